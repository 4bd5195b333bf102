#include "transform.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "crew.hpp"
#include "lanes.hpp"
#include "narrow.hpp"
#include "tasks.hpp"

namespace tilewise {

namespace {

constexpr std::int64_t column_block = 64;
constexpr std::int64_t ket_group = 8;       // kets that a worker takes at a time: a cache line of strided ones
constexpr std::int64_t block_elements = 1 << 18;  // results of step 2 that are made at a time

// Runs `body(worker number)` on all workers and passes on the first exception.
template <class Body>
void on_workers(std::int64_t n_workers, std::atomic<std::int64_t>& next, std::int64_t count, const Body& body) {
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&](std::int64_t number) {
        try {
            body(number);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex);
            failure = std::current_exception();
            next = count;
        }
    };
    on_crew(n_workers, work, [&] { next = count; });
    if (failure) std::rethrow_exception(failure);
}

void product(const double* a, std::int64_t lda, bool transpose_a, const double* b, std::int64_t ldb, double* c,
             std::int64_t ldc, std::int64_t m, std::int64_t n, std::int64_t k, double* scratch) {
    double* buffers[3] = {const_cast<double*>(a), const_cast<double*>(b), c};
    const Gemm record{0, 1, 2, transpose_a, 0, m, n, k, 0, lda, 0, ldb, 0, ldc, 1.0, 0.0};
    Arena arena{scratch, scratch ? narrow_scratch : 0};
    gemm(record, buffers, arena);
}

// Memory of one worker, and the transformation of some kets.
class Worker {
public:
    Worker(const Orbitals& orbitals, const Kets& kets, const FockPart& fock)
        : o_(orbitals), kets_(kets), fock_(fock), n_pairs_(orbitals.n_basis * (orbitals.n_basis + 1) / 2),
          square_(orbitals.n_basis * orbitals.n_basis), other_(square_.size()),
          half_(orbitals.n_basis * orbitals.n_orbitals), block_(orbitals.n_orbitals * orbitals.n_orbitals),
          scratch_(narrow_scratch), exchange_(fock.density ? square_.size() : 0) {
        if (!in_place()) packed_.resize(ket_group * n_pairs_);
        std::int64_t at = 0;
        for (std::int64_t h = 0; h < o_.n_irreps; ++h) {
            starts_[h] = at;
            at += functions(h) * orbitals_of(h);
        }
    }

    void operator()(std::int64_t first, std::int64_t count, const std::int64_t* row, double* out) {
        if (!in_place()) fetch(first, count);
        for (std::int64_t k = 0; k < count; ++k) {
            unpack(in_place() ? kets_.data + (first + k) * kets_.ket_stride : packed_.data() + k * n_pairs_);
            if (fock_.density) add_fock(first + k);
            if (!o_.plain) {
                adapt(square_, other_);
                transpose(other_, square_);
                adapt(square_, other_);
                std::swap(square_, other_);
            }
            row_ = row[first + k];
            for (std::int64_t right = 0; right < o_.n_irreps; ++right) columns(right, out);
        }
    }

    const std::vector<double>& exchange() const { return exchange_; }

private:
    std::int64_t functions(std::int64_t h) const { return o_.first_function[h + 1] - o_.first_function[h]; }
    std::int64_t orbitals_of(std::int64_t h) const { return o_.first_orbital[h + 1] - o_.first_orbital[h]; }

    bool in_place() const { return !kets_.numbers && kets_.pair_stride == 1; }

    // Packs some kets one after the other; neighbours lie side by side in memory, so that all are read at once.
    void fetch(std::int64_t first, std::int64_t count) {
        if (!kets_.numbers) {
            const double* from = kets_.data + first * kets_.ket_stride;
            for (std::int64_t x = 0; x < n_pairs_; ++x, from += kets_.pair_stride)
                for (std::int64_t k = 0; k < count; ++k) packed_[k * n_pairs_ + x] = from[k * kets_.ket_stride];
            return;
        }
        const std::int64_t* number = kets_.numbers + first;
        std::int64_t longest = 0;
        for (std::int64_t k = 0; k < count; ++k) {
            const std::int64_t n = number[k];
            std::copy_n(kets_.data + n * (n + 1) / 2, n + 1, packed_.data() + k * n_pairs_);
            longest = std::max(longest, n);
        }
        for (std::int64_t k = 0; k < count; ++k)
            for (std::int64_t x = number[k] + 1; x <= longest; ++x)
                packed_[k * n_pairs_ + x] = kets_.data[x * (x + 1) / 2 + number[k]];
        for (std::int64_t x = longest + 1; x < n_pairs_; ++x) {
            const double* from = kets_.data + x * (x + 1) / 2;
            for (std::int64_t k = 0; k < count; ++k) packed_[k * n_pairs_ + x] = from[number[k]];
        }
    }

    // J of this pair, and K_mu += w M D_nu, K_nu += w M D_mu.
    void add_fock(std::int64_t ket) {
        const std::int64_t n = o_.n_basis, mu = fock_.mu[ket], nu = fock_.nu[ket];
        const double* d_mu = fock_.density + mu * n;
        const double* d_nu = fock_.density + nu * n;
        const double w = fock_.weight[ket];
        double coulomb = 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double* row = square_.data() + i * n;
            coulomb += dot(n, row, fock_.density + i * n);
            exchange_[mu * n + i] += w * dot(n, row, d_nu);
            exchange_[nu * n + i] += w * dot(n, row, d_mu);
        }
        fock_.coulomb[ket] = coulomb;
    }

    void unpack(const double* packed) {
        const std::int64_t n = o_.n_basis;
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j <= i; ++j) square_[i * n + j] = *packed++;
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = i + 1; j < n; ++j) square_[i * n + j] = square_[j * n + i];
    }

    // Rows over basis functions to rows over symmetry-adapted functions.
    void adapt(const std::vector<double>& from, std::vector<double>& to) const {
        const std::int64_t n = o_.n_basis;
        for (std::int64_t f = 0; f < n; ++f) {
            double* row = to.data() + f * n;
            if (o_.first_entry[f] == o_.first_entry[f + 1]) std::fill(row, row + n, 0.0);
            for (std::int64_t e = o_.first_entry[f]; e < o_.first_entry[f + 1]; ++e) {
                add_multiple(n, o_.weight[e], from.data() + o_.entry[e] * n, row, e == o_.first_entry[f]);
            }
        }
    }

    void transpose(const std::vector<double>& from, std::vector<double>& to) const {
        const std::int64_t n = o_.n_basis, step = 16;
        for (std::int64_t i0 = 0; i0 < n; i0 += step)
            for (std::int64_t j0 = 0; j0 < n; j0 += step)
                for (std::int64_t i = i0; i < std::min(i0 + step, n); ++i)
                    for (std::int64_t j = j0; j < std::min(j0 + step, n); ++j) to[j * n + i] = from[i * n + j];
    }

    // All pairs (r, s) with s of one irrep and r of this or a later one.
    void columns(std::int64_t right, double* out) {
        const std::int64_t n = o_.n_basis, n_right = orbitals_of(right), f_right = functions(right);
        if (n_right == 0) return;
        const std::int64_t first = o_.first_function[right], rows = n - first;
        product(square_.data() + first * n + first, n, false, o_.coefficients.data + starts_[right], n_right, half_.data(),
                n_right, rows, n_right, f_right, scratch_.data());
        for (std::int64_t left = right; left < o_.n_irreps; ++left) {
            const std::int64_t n_left = orbitals_of(left);
            if (n_left == 0) continue;
            const double* source = half_.data() + (o_.first_function[left] - first) * n_right;
            for (std::int64_t s0 = 0; s0 < n_right; s0 += column_block) {
                const std::int64_t width = std::min(column_block, n_right - s0);
                const std::int64_t r0 = left == right ? s0 : 0;
                product(o_.coefficients.data + starts_[left] + r0, n_left, true, source + s0, n_right, block_.data(), width,
                        n_left - r0, width, functions(left), scratch_.data());
                scatter(left, right, r0, s0, n_left - r0, width, out);
            }
        }
    }

    void scatter(std::int64_t left, std::int64_t right, std::int64_t r0, std::int64_t s0, std::int64_t height,
                 std::int64_t width, double* out) const {
        const std::int64_t* r_place = o_.position.data + o_.first_orbital[left] + r0;
        const std::int64_t* s_place = o_.position.data + o_.first_orbital[right] + s0;
        for (std::int64_t r = 0; r < height; ++r)
            for (std::int64_t s = 0; s < width; ++s) {
                const std::int64_t p = std::max(r_place[r], s_place[s]), q = std::min(r_place[r], s_place[s]);
                const std::int64_t pair = p * (p + 1) / 2 + q;
                if (o_.column[pair] >= 0) out[o_.column[pair] + row_ * o_.step[pair]] = block_[r * width + s];
            }
    }

    const Orbitals& o_;
    const Kets& kets_;
    const FockPart& fock_;
    std::int64_t n_pairs_;
    std::vector<double> square_, other_, half_, block_, scratch_, exchange_, packed_;
    std::int64_t starts_[8] = {}, row_ = 0;
};

// Gives the whole pages of some memory back to the system.
void release(double* first, std::int64_t count) {
#ifdef __linux__
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<std::uintptr_t>(first) + page - 1) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(first + count) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#else
    (void)first, (void)count;
#endif
}

// Memory of one worker of step 2.
class Finisher {
public:
    explicit Finisher(const SecondHalf& work)
        : w_(work), half_(work.n_mu * work.n_orbitals * columns_at_once), block_(block_elements), scratch_(narrow_scratch) {}

    void operator()(const Columns& columns) {
        const std::int64_t n = w_.n_orbitals, width = columns.count;
        std::int64_t q0 = n, q1 = 0;
        for (std::int64_t k = columns.first_job; k < columns.first_job + columns.n_jobs; ++k) {
            q0 = std::min(q0, w_.jobs[k].first_q);
            q1 = std::max(q1, w_.jobs[k].first_q + w_.jobs[k].n_q);
        }
        const std::int64_t all_rows = w_.first_row[w_.n_mu];
        double* values = w_.values + columns.first * all_rows;
        for (std::int64_t mu = 0; mu < w_.n_mu; ++mu) {
            const std::int64_t row = w_.first_row[mu], rows = w_.first_row[mu + 1] - row;
            product(w_.right.data + row * n + q0 * rows, rows, false, values + row * width, width,
                    half_.data() + (mu * n + q0) * width, width, q1 - q0, width, rows, scratch_.data());
        }
        if (columns.last) release(values, all_rows * width);
        if (columns.symmetric >= 0) symmetric_.assign(width * columns.row_length, 0.0);
        for (std::int64_t k = columns.first_job; k < columns.first_job + columns.n_jobs; ++k) run(w_.jobs[k], columns);
        if (columns.symmetric >= 0)
            std::copy(symmetric_.begin(), symmetric_.end(),
                      w_.buffers[columns.symmetric] + columns.sector_offset + columns.target_column * columns.row_length);
    }

private:
    void run(const Job& job, const Columns& columns) {
        const std::int64_t width = columns.count, n = w_.n_orbitals;
        const std::int64_t step_p = std::min<std::int64_t>(job.n_p, 128);
        const std::int64_t step_q = std::max<std::int64_t>(1, std::min(job.n_q, block_elements / (step_p * width)));
        for (std::int64_t p = 0; p < job.n_p; p += step_p) {
            const std::int64_t n_p = std::min(step_p, job.n_p - p);
            for (std::int64_t q = 0; q < job.n_q; q += step_q) {
                const std::int64_t n_q = std::min(step_q, job.n_q - q);
                product(w_.left.data + (job.first_p + p) * w_.n_mu, w_.n_mu, false,
                        half_.data() + (job.first_q + q) * width, n * width, block_.data(), n_q * width, n_p, n_q * width,
                        w_.n_mu, scratch_.data());
                add(columns, job.first_p + p, n_p, job.first_q + q, n_q);
            }
        }
    }

    void add(const Columns& columns, std::int64_t first_p, std::int64_t n_p, std::int64_t first_q, std::int64_t n_q) {
        const std::int64_t n = w_.n_orbitals, width = columns.count;
        const double* scale = w_.column_scale.data + columns.first;
        const double* from = block_.data();
        for (std::int64_t p = first_p; p < first_p + n_p; ++p) {
            const std::int64_t row = (columns.table * n + p) * n;
            if (w_.buffer[row + first_q] == columns.symmetric && w_.factor[row + first_q] != 0.0) {
                // All q of a job have one kind, and so one tensor.
                for (std::int64_t x = 0; x < width; ++x) {
                    double* to = symmetric_.data() + x * columns.row_length;
                    for (std::int64_t q = 0; q < n_q; ++q) {
                        const std::int64_t at = row + first_q + q;
                        to[w_.offset[at]] += w_.factor[at] * scale[x] * from[q * width + x];
                    }
                }
                from += n_q * width;
                continue;
            }
            for (std::int64_t q = first_q; q < first_q + n_q; ++q, from += width) {
                const std::int64_t at = row + q;
                const double factor = w_.factor[at];
                if (factor == 0.0) continue;
                double* to = w_.buffers[w_.buffer[at]] + w_.offset[at] + columns.target_column;
                for (std::int64_t x = 0; x < width; ++x) to[x] += factor * scale[x] * from[x];
            }
        }
    }

    const SecondHalf& w_;
    std::vector<double> half_, block_, scratch_, symmetric_;
};

}  // namespace

void half_transform(const Orbitals& orbitals, const Kets& kets, const FockPart& fock, const std::int64_t* row, double* out,
                    std::int64_t n_workers) {
    std::atomic<std::int64_t> next{0};
    std::vector<std::vector<double>> exchange(n_workers);
    on_workers(n_workers, next, kets.count, [&](std::int64_t number) {
        Worker worker(orbitals, kets, fock);
        for (std::int64_t k = next.fetch_add(ket_group); k < kets.count; k = next.fetch_add(ket_group))
            worker(k, std::min(ket_group, kets.count - k), row, out);
        exchange[number] = worker.exchange();
    });
    if (fock.density)
        for (const auto& part : exchange)
            for (std::size_t x = 0; x < part.size(); ++x) fock.exchange[x] += part[x];
}

void second_half(const SecondHalf& work, std::int64_t n_workers) {
    std::atomic<std::int64_t> next{0};
    on_workers(n_workers, next, work.columns.size, [&](std::int64_t) {
        Finisher finish(work);
        for (std::int64_t k = next++; k < work.columns.size; k = next++) finish(work.columns[k]);
    });
}

}  // namespace tilewise
