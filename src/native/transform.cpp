#include "transform.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tasks.hpp"

namespace tilewise {

namespace {

constexpr std::int64_t column_block = 64;

// Memory of one worker, and the transformation of one matrix.
class Worker {
public:
    explicit Worker(const Orbitals& orbitals)
        : o_(orbitals), square_(orbitals.n_basis * orbitals.n_basis), other_(square_.size()),
          half_(orbitals.n_basis * orbitals.n_orbitals), block_(orbitals.n_orbitals * orbitals.n_orbitals) {}

    void operator()(const double* packed, double* out) {
        unpack(packed);
        if (!o_.plain) {
            adapt(square_, other_);
            transpose(other_, square_);
            adapt(square_, other_);
            std::swap(square_, other_);
        }
        std::int64_t at = 0;
        for (std::int64_t h = 0; h < o_.n_irreps; ++h) {
            starts_[h] = at;
            at += functions(h) * orbitals(h);
        }
        for (std::int64_t right = 0; right < o_.n_irreps; ++right) columns(right, out);
    }

private:
    std::int64_t functions(std::int64_t h) const { return o_.first_function[h + 1] - o_.first_function[h]; }
    std::int64_t orbitals(std::int64_t h) const { return o_.first_orbital[h + 1] - o_.first_orbital[h]; }

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
            std::fill(row, row + n, 0.0);
            for (std::int64_t e = o_.first_entry[f]; e < o_.first_entry[f + 1]; ++e) {
                const double w = o_.weight[e];
                const double* source = from.data() + o_.entry[e] * n;
                for (std::int64_t x = 0; x < n; ++x) row[x] += w * source[x];
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
        const std::int64_t n = o_.n_basis, n_right = orbitals(right), f_right = functions(right);
        if (n_right == 0) return;
        const std::int64_t first = o_.first_function[right], rows = n - first;
        product(square_.data() + first * n + first, n, false, o_.coefficients.data + starts_[right], n_right, half_.data(),
                n_right, rows, n_right, f_right);
        for (std::int64_t left = right; left < o_.n_irreps; ++left) {
            const std::int64_t n_left = orbitals(left);
            if (n_left == 0) continue;
            const double* source = half_.data() + (o_.first_function[left] - first) * n_right;
            for (std::int64_t s0 = 0; s0 < n_right; s0 += column_block) {
                const std::int64_t width = std::min(column_block, n_right - s0);
                const std::int64_t r0 = left == right ? s0 : 0;
                product(o_.coefficients.data + starts_[left] + r0, n_left, true, source + s0, n_right, block_.data(), width,
                        n_left - r0, width, functions(left));
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
                out[p * (p + 1) / 2 + q] = block_[r * width + s];
            }
    }

    static void product(const double* a, std::int64_t lda, bool transpose_a, const double* b, std::int64_t ldb, double* c,
                        std::int64_t ldc, std::int64_t m, std::int64_t n, std::int64_t k) {
        double* buffers[3] = {const_cast<double*>(a), const_cast<double*>(b), c};
        const Gemm record{0, 1, 2, transpose_a, 0, m, n, k, 0, lda, 0, ldb, 0, ldc, 1.0, 0.0};
        gemm(record, buffers);
    }

    const Orbitals& o_;
    std::vector<double> square_, other_, half_, block_;
    std::int64_t starts_[8] = {};
};

}  // namespace

void half_transform(const Orbitals& orbitals, const double* kets, std::int64_t count, double* out, std::int64_t n_workers) {
    const std::int64_t in_pairs = orbitals.n_basis * (orbitals.n_basis + 1) / 2;
    const std::int64_t out_pairs = orbitals.n_orbitals * (orbitals.n_orbitals + 1) / 2;
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&] {
        try {
            Worker worker(orbitals);
            for (std::int64_t k = next++; k < count; k = next++) worker(kets + k * in_pairs, out + k * out_pairs);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex);
            failure = std::current_exception();
            next = count;
        }
    };
    std::vector<std::thread> others;
    for (std::int64_t w = 1; w < n_workers; ++w) others.emplace_back(work);
    work();
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

void unpack_rows(const double* packed, std::int64_t n_pairs, Span<std::int64_t> rows, double* out) {
    for (std::int64_t k = 0; k < rows.size; ++k, out += n_pairs) {
        const std::int64_t row = rows[k];
        std::copy_n(packed + row * (row + 1) / 2, row + 1, out);
        for (std::int64_t col = row + 1; col < n_pairs; ++col) out[col] = packed[col * (col + 1) / 2 + row];
    }
}

}  // namespace tilewise
