// The first step of the transformation with integrals that libcint computes on the way.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "combine.hpp"
#include "crew.hpp"
#include "libcint.hpp"
#include "scratch.hpp"

namespace tilewise {

namespace {

// Classes whose representative lies in one pair of shells, and where their images are.
struct ShellPair {
    std::int64_t left, right;  // shells, left >= right
    std::vector<std::int64_t> classes;
    std::vector<std::pair<std::int64_t, std::int64_t>> images;  // pairs of shells
};

struct Function {
    std::int64_t shell, number;
};

// Pairs of shells with representatives, in the order of their first class, and where the images of all entries are: the pairs
// of functions of all images of one pair of shells are counted, image after image, the left function fastest.
class ShellPairs {
public:
    ShellPairs(const PairClasses& c, const Libcint& libcint) : place(c.image.size) {
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
            irreps.push_back(irreps_of(c, k));
            for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) {
                const auto& [a, b] = pairs[c.image[e]];
                const auto found = std::find(mine.images.begin(), mine.images.end(), std::pair(a.shell, b.shell));
                const std::int64_t which = found - mine.images.begin(), n_left = libcint.size(a.shell), n_right = libcint.size(b.shell);
                place[e] = (which * n_right + b.number) * n_left + a.number;
                if (found == mine.images.end()) mine.images.emplace_back(a.shell, b.shell);
            }
        }
        std::stable_sort(all.begin(), all.end(), [](const ShellPair& x, const ShellPair& y) { return x.left < y.left; });
    }

    std::vector<ShellPair> all;
    std::vector<std::int64_t> place;  // of each entry
    std::vector<unsigned> irreps;  // of each class, as bits
};

// One worker of the direct way: all rows whose representatives lie in one pair of shells.
class QuartetWorker {
public:
    QuartetWorker(const PairClasses& classes, const Libcint& libcint, const ShellPairs& pairs, const double* bounds, double threshold,
                  double* const* out, std::int64_t end)
        : c_(classes), libcint_(libcint), pairs_(pairs), bounds_(bounds), threshold_(threshold), out_(out), end_(end),
          cache_(libcint.cache_size()), nowhere_(classes.first.size) {}

    void operator()(std::int64_t number) {
        const ShellPair& bra = pairs_.all[end_ - 1 - number];  // the longest rows first
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
    // The integrals with all images of the ket, [image][right][left] of the ket by the pairs of the bra.
    void compute(const ShellPair& bra, const ShellPair& ket) {
        const std::int64_t n = libcint_.n_shells();
        const double bound = bounds_[bra.left * n + bra.right];
        const std::int64_t n_bra = libcint_.size(bra.left) * libcint_.size(bra.right);
        const std::int64_t count = n_bra * libcint_.size(ket.left) * libcint_.size(ket.right);  // the same for each image
        double* to = values_.at_least(static_cast<std::int64_t>(ket.images.size()) * count);
        for (const auto& [a, b] : ket.images) {
            const bool negligible = bound * bounds_[a * n + b] < threshold_;
            if (negligible || !libcint_({bra.left, bra.right, a, b}, to, cache_.data())) std::fill(to, to + count, 0.0);
            to += count;
        }
    }

    void combine_with(const ShellPair& bra, const ShellPair& ket, std::size_t k) {
        const std::int64_t number = bra.classes[k];
        const std::int64_t n_bra = libcint_.size(bra.left) * libcint_.size(bra.right);
        const double* const values = values_.data() + pairs_.place[c_.first[number]];  // the representative is the first image
        const auto value = [&](std::int64_t e) { return values[pairs_.place[e] * n_bra]; };
        for (const std::int64_t l : ket.classes) {
            if (l > number) break;
            if (!(pairs_.irreps[l] & rows_[k].irreps)) continue;
            combine(c_, l, rows_[k].scale, value, rows_[k].rows);
        }
    }

    const PairClasses& c_;
    const Libcint& libcint_;
    const ShellPairs& pairs_;
    const double* bounds_;
    double threshold_;
    double* const* out_;
    std::int64_t end_;
    std::vector<double> cache_, nowhere_;
    Buffer values_;
    std::vector<RowOf> rows_;
};

}  // namespace

void adapt_quartets(const PairClasses& classes, const Libcint& libcint, double threshold, std::int64_t first_shell, std::int64_t last_shell,
                    double* const* out, std::int64_t n_workers) {
    std::vector<double> bounds(libcint.n_shells() * libcint.n_shells());
    schwarz(libcint, bounds.data(), n_workers);
    const ShellPairs pairs(classes, libcint);
    const auto before = [](const ShellPair& pair, std::int64_t shell) { return pair.left < shell; };  // they are in this order
    const auto first = std::lower_bound(pairs.all.begin(), pairs.all.end(), first_shell, before);
    const auto last = std::lower_bound(pairs.all.begin(), pairs.all.end(), last_shell, before);
    hand_out(n_workers, last - first, [&] {
        return QuartetWorker(classes, libcint, pairs, bounds.data(), threshold, out, last - pairs.all.begin());
    });
}

}  // namespace tilewise
