#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "crew.hpp"
#include "libcint.hpp"
#include "transform.hpp"

namespace tilewise {

namespace {

// Sums and differences of all values: out[t] = sum over j of (-1)^(bits that t and j share) in[j].
inline void walsh_hadamard(double* x, std::int64_t count) {
    for (std::int64_t step = 1; step < count; step *= 2)
        for (std::int64_t first = 0; first < count; first += 2 * step)
            for (std::int64_t k = first; k < first + step; ++k) {
                const double a = x[k], b = x[k + step];
                x[k] = a + b;
                x[k + step] = a - b;
            }
}

// Class L of the row of K: `value(e)` is the integral of K and the image of entry e.
template <int count, class Value>
inline void combine(const PairClasses& c, std::int64_t first, double scale, const Value& value, double* const* out) {
    double x[count];
    for (int j = 0; j < count; ++j) x[j] = scale * c.weight[first + j] * value(first + j);
    walsh_hadamard(x, count);
    for (int j = 0; j < count; ++j) out[c.irrep[first + j]][c.place[first + j]] = x[j];
}

template <class Value>
inline void combine(const PairClasses& c, std::int64_t l, double scale, const Value& value, double* const* out) {
    const std::int64_t first = c.first[l];
    switch (c.first[l + 1] - first) {
        case 1: return combine<1>(c, first, scale, value, out);
        case 2: return combine<2>(c, first, scale, value, out);
        case 4: return combine<4>(c, first, scale, value, out);
        default: return combine<8>(c, first, scale, value, out);
    }
}

// Row K of all irreps that it has; what the others would get goes to `nowhere`.
struct RowOf {
    RowOf(const PairClasses& c, std::int64_t k, double* const* out, double* nowhere)
        : scale(std::sqrt(static_cast<double>(c.first[k + 1] - c.first[k]))) {
        for (auto& row : rows) row = nowhere;
        for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) {
            const std::int64_t a = c.place[e];
            rows[c.irrep[e]] = out[c.irrep[e]] + a * (a + 1) / 2;
        }
    }

    double* rows[max_irreps];
    double scale;
};

void adapt_row(const PairClasses& c, const double* row, std::int64_t k, double* const* out, double* nowhere) {
    const RowOf to(c, k, out, nowhere);
    for (std::int64_t l = 0; l <= k; ++l) combine(c, l, to.scale, [&](std::int64_t e) { return row[c.image[e]]; }, to.rows);
}

// Classes whose representative lies in one pair of shells, and where their images are.
struct ShellPair {
    std::int64_t left, right;  // shells, left >= right
    std::vector<std::int64_t> classes;
    std::vector<std::pair<std::int64_t, std::int64_t>> images;  // pairs of shells
};

// The image of an entry: which one of the images of its pair of shells, and the place of its pair of functions there.
struct Image {
    std::int64_t which, left, right;  // functions, counted within their shells
};

struct Function {
    std::int64_t shell, number;
};

// Pairs of shells with representatives, in the order of their first class, and the images of all entries.
class ShellPairs {
public:
    ShellPairs(const PairClasses& c, const Libcint& libcint) : images(c.image.size) {
        std::vector<Function> functions;
        for (std::int64_t s = 0; s < libcint.n_shells(); ++s)
            for (std::int64_t k = 0; k < libcint.size(s); ++k) functions.push_back({s, k});
        std::vector<std::pair<Function, Function>> pairs;
        for (std::size_t p = 0; p < functions.size(); ++p)
            for (std::size_t q = 0; q <= p; ++q) pairs.emplace_back(functions[p], functions[q]);
        std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
        for (std::int64_t k = 0; k + 1 < c.first.size; ++k) {
            const auto& [left, right] = pairs[c.image[c.first[k]]];
            const auto [at, is_new] = known.try_emplace({left.shell, right.shell}, all.size());
            if (is_new) all.push_back({left.shell, right.shell, {}, {}});
            ShellPair& mine = all[at->second];
            mine.classes.push_back(k);
            for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) {
                const auto& [a, b] = pairs[c.image[e]];
                const auto found = std::find(mine.images.begin(), mine.images.end(), std::pair(a.shell, b.shell));
                images[e] = {found - mine.images.begin(), a.number, b.number};
                if (found == mine.images.end()) mine.images.emplace_back(a.shell, b.shell);
            }
        }
        std::stable_sort(all.begin(), all.end(), [](const ShellPair& x, const ShellPair& y) { return x.left < y.left; });
    }

    std::vector<ShellPair> all;
    std::vector<Image> images;
};

// One worker of the direct way: all rows whose representatives lie in one pair of shells.
class QuartetWorker {
public:
    QuartetWorker(const PairClasses& classes, const Libcint& libcint, const ShellPairs& pairs, const double* bounds, double threshold,
                  double* const* out)
        : c_(classes), libcint_(libcint), pairs_(pairs), bounds_(bounds), threshold_(threshold), out_(out), quartets_(libcint),
          nowhere_(classes.first.size) {}

    void operator()(std::int64_t number) {
        const ShellPair& bra = pairs_.all[pairs_.all.size() - 1 - number];  // the longest rows first
        rows_.clear();
        for (const std::int64_t k : bra.classes) rows_.emplace_back(c_, k, out_, nowhere_.data());
        for (const ShellPair& ket : pairs_.all) {
            if (ket.left > bra.left) break;
            if (ket.classes.front() > bra.classes.back()) continue;
            compute(bra, ket);
            for (std::size_t k = 0; k < bra.classes.size(); ++k) combine_with(bra, ket, k);
        }
    }

private:
    // The integrals with each image of the ket that is not negligible.
    void compute(const ShellPair& bra, const ShellPair& ket) {
        const std::int64_t n = libcint_.n_shells();
        const double bound = bounds_[bra.left * n + bra.right];
        is_zero_.assign(ket.images.size(), true);
        values_.resize(std::max(values_.size(), ket.images.size()));
        for (std::size_t x = 0; x < ket.images.size(); ++x) {
            const auto [a, b] = ket.images[x];
            if (bound * bounds_[a * n + b] < threshold_) continue;
            const double* found = quartets_(bra.left, bra.right, a, b);
            if (!found) continue;
            is_zero_[x] = false;
            const std::int64_t count = libcint_.size(bra.left) * libcint_.size(bra.right) * libcint_.size(a) * libcint_.size(b);
            values_[x].assign(found, found + count);
        }
    }

    void combine_with(const ShellPair& bra, const ShellPair& ket, std::size_t k) {
        const std::int64_t number = bra.classes[k];
        const Image& mine = pairs_.images[c_.first[number]];
        const std::int64_t n_left = libcint_.size(bra.left), n_pair = n_left * libcint_.size(bra.right);
        const std::int64_t offset = mine.right * n_left + mine.left;
        const auto value = [&](std::int64_t e) {
            const Image& other = pairs_.images[e];
            if (is_zero_[other.which]) return 0.0;
            const std::int64_t n_other = libcint_.size(ket.images[other.which].first);
            return values_[other.which][(other.right * n_other + other.left) * n_pair + offset];
        };
        for (const std::int64_t l : ket.classes) {
            if (l > number) break;
            combine(c_, l, rows_[k].scale, value, rows_[k].rows);
        }
    }

    const PairClasses& c_;
    const Libcint& libcint_;
    const ShellPairs& pairs_;
    const double* bounds_;
    double threshold_;
    double* const* out_;
    Quartets quartets_;
    std::vector<double> nowhere_;
    std::vector<RowOf> rows_;
    std::vector<std::vector<double>> values_;
    std::vector<bool> is_zero_;
};

}  // namespace

void adapt_pairs(const PairClasses& classes, const PairMatrix& integrals, double* const* out, std::int64_t n_workers) {
    constexpr std::int64_t rows_at_once = 16;
    const std::int64_t n = classes.first.size - 1;
    const auto make = [&] {
        return [&, nowhere = std::vector<double>(n)](std::int64_t run) mutable {
            const std::int64_t end = n - run * rows_at_once;  // the longest rows first
            for (std::int64_t k = std::max<std::int64_t>(0, end - rows_at_once); k < end; ++k)
                adapt_row(classes, integrals.row(classes.image[classes.first[k]]), k, out, nowhere.data());
        };
    };
    hand_out(n_workers, (n + rows_at_once - 1) / rows_at_once, make);
}

void adapt_quartets(const PairClasses& classes, const Libcint& libcint, double threshold, double* const* out, std::int64_t n_workers) {
    std::vector<double> bounds(libcint.n_shells() * libcint.n_shells());
    schwarz(libcint, bounds.data(), n_workers);
    const ShellPairs pairs(classes, libcint);
    hand_out(n_workers, static_cast<std::int64_t>(pairs.all.size()),
             [&] { return QuartetWorker(classes, libcint, pairs, bounds.data(), threshold, out); });
}

}  // namespace tilewise
