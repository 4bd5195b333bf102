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
    std::vector<std::int64_t> moved;  // what each operation makes of each image: [operation * n_images + image]
};

struct Function {
    std::int64_t shell, number;
};

// What operations make of shells and of their functions.
class ShellOperations {
public:
    ShellOperations(const FunctionOperations& operations, const Libcint& libcint) : of_functions_(operations), libcint_(libcint) {
        shell_of_.reserve(operations.n_functions);
        for (std::int64_t s = 0; s < libcint.n_shells(); ++s) shell_of_.insert(shell_of_.end(), libcint.size(s), s);
    }

    std::int64_t count() const { return of_functions_.count; }

    // The pair that an operation makes of a pair of shells, the later one first.
    std::pair<std::int64_t, std::int64_t> pair(std::int64_t operation, std::int64_t left, std::int64_t right) const {
        const std::int64_t a = shell(operation, left), b = shell(operation, right);
        return {std::max(a, b), std::min(a, b)};
    }

    // Of each pair of functions of two shells, the left one fastest: its place among those of the pair of shells that an operation
    // makes of these, and the sign.
    void places(std::int64_t operation, std::int64_t left, std::int64_t right, std::vector<std::pair<std::int64_t, double>>& found) const {
        const auto [a, b] = pair(operation, left, right);
        found.clear();
        for (std::int64_t q = libcint_.first(right); q < libcint_.first(right + 1); ++q)
            for (std::int64_t p = libcint_.first(left); p < libcint_.first(left + 1); ++p) {
                std::int64_t first = image(operation, p), second = image(operation, q);
                if (shell_of_[first] != a) std::swap(first, second);
                const std::int64_t place = (second - libcint_.first(b)) * libcint_.size(a) + first - libcint_.first(a);
                found.emplace_back(place, sign(operation, p) * sign(operation, q));
            }
    }

private:
    std::int64_t image(std::int64_t operation, std::int64_t function) const {
        return of_functions_.image[operation * of_functions_.n_functions + function];
    }

    double sign(std::int64_t operation, std::int64_t function) const {
        return of_functions_.sign[operation * of_functions_.n_functions + function];
    }

    std::int64_t shell(std::int64_t operation, std::int64_t shell) const { return shell_of_[image(operation, libcint_.first(shell))]; }

    const FunctionOperations& of_functions_;
    const Libcint& libcint_;
    std::vector<std::int64_t> shell_of_;
};

// Pairs of shells with representatives, in the order of their first class, and where the images of all entries are: the pairs
// of functions of all images of one pair of shells are counted, image after image, the left function fastest.
class ShellPairs {
public:
    ShellPairs(const PairClasses& c, const ShellOperations& operations, const Libcint& libcint) : place(c.image.size) {
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
            if (is_new) all.push_back({left.shell, right.shell, {}, {}, {}});
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
        for (ShellPair& one : all)
            for (std::int64_t g = 0; g < operations.count(); ++g)
                for (const auto& [a, b] : one.images) {
                    const auto found = std::find(one.images.begin(), one.images.end(), operations.pair(g, a, b));
                    one.moved.push_back(found - one.images.begin());
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
    QuartetWorker(const PairClasses& classes, const ShellOperations& operations, const Libcint& libcint, const ShellPairs& pairs,
                  const double* bounds, double threshold, double* const* out, std::int64_t end)
        : c_(classes), operations_(operations), libcint_(libcint), pairs_(pairs), bounds_(bounds), threshold_(threshold), out_(out), end_(end),
          cache_(libcint.cache_size()), nowhere_(classes.first.size) {}

    void operator()(std::int64_t number) {
        const ShellPair& bra = pairs_.all[end_ - 1 - number];  // the longest rows first
        rows_.clear();
        for (const std::int64_t k : bra.classes) rows_.emplace_back(c_, k, out_, nowhere_.data());
        keepers_.clear();
        for (std::int64_t g = 0; g < operations_.count(); ++g) {
            if (operations_.pair(g, bra.left, bra.right) != std::pair(bra.left, bra.right)) continue;
            keepers_.push_back({g, {}});
            operations_.places(g, bra.left, bra.right, keepers_.back().of_bra);
        }
        for (const ShellPair& ket : pairs_.all) {
            if (ket.left > bra.left) break;
            if (ket.classes.front() > bra.classes.back()) continue;
            compute(bra, ket);
            for (std::size_t k = 0; k < bra.classes.size(); ++k) combine_with(bra, ket, k);
        }
    }

private:
    // An operation that keeps the pair of shells of the bra, and what it makes of its functions.
    struct Keeper {
        std::int64_t operation;
        std::vector<std::pair<std::int64_t, double>> of_bra;
    };

    // The integrals with all images of the ket, [image][right][left] of the ket by the pairs of the bra. Those of an image that an
    // operation takes to an earlier one, while it keeps the bra, are the same in another order.
    void compute(const ShellPair& bra, const ShellPair& ket) {
        const std::int64_t n = libcint_.n_shells(), n_images = static_cast<std::int64_t>(ket.images.size());
        const double bound = bounds_[bra.left * n + bra.right];
        const std::int64_t n_bra = libcint_.size(bra.left) * libcint_.size(bra.right);
        const std::int64_t count = n_bra * libcint_.size(ket.left) * libcint_.size(ket.right);  // the same for each image
        double* const values = values_.at_least(n_images * count);
        for (std::int64_t k = 0; k < n_images; ++k) {
            double* const to = values + k * count;
            const auto [a, b] = ket.images[k];
            const auto known = std::find_if(keepers_.begin(), keepers_.end(),
                                            [&](const Keeper& keeper) { return ket.moved[keeper.operation * n_images + k] < k; });
            if (known != keepers_.end()) {
                copy(values + ket.moved[known->operation * n_images + k] * count, *known, a, b, to);
                continue;
            }
            const bool negligible = bound * bounds_[a * n + b] < threshold_;
            if (negligible || !libcint_({bra.left, bra.right, a, b}, to, cache_.data())) std::fill(to, to + count, 0.0);
        }
    }

    void copy(const double* from, const Keeper& keeper, std::int64_t left, std::int64_t right, double* to) {
        operations_.places(keeper.operation, left, right, of_ket_);
        const std::int64_t n_bra = static_cast<std::int64_t>(keeper.of_bra.size());
        for (const auto& [ket, ket_sign] : of_ket_)
            for (const auto& [bra, bra_sign] : keeper.of_bra) *to++ = ket_sign * bra_sign * from[ket * n_bra + bra];
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
    const ShellOperations& operations_;
    const Libcint& libcint_;
    const ShellPairs& pairs_;
    const double* bounds_;
    double threshold_;
    double* const* out_;
    std::int64_t end_;
    std::vector<double> cache_, nowhere_;
    Buffer values_;
    std::vector<RowOf> rows_;
    std::vector<Keeper> keepers_;
    std::vector<std::pair<std::int64_t, double>> of_ket_;
};

}  // namespace

void adapt_quartets(const PairClasses& classes, const FunctionOperations& functions, const Libcint& libcint, double threshold,
                    std::int64_t first_shell, std::int64_t last_shell, double* const* out, std::int64_t n_workers) {
    std::vector<double> bounds(libcint.n_shells() * libcint.n_shells());
    schwarz(libcint, bounds.data(), n_workers);
    const ShellOperations operations(functions, libcint);
    const ShellPairs pairs(classes, operations, libcint);
    const auto before = [](const ShellPair& pair, std::int64_t shell) { return pair.left < shell; };  // they are in this order
    const auto first = std::lower_bound(pairs.all.begin(), pairs.all.end(), first_shell, before);
    const auto last = std::lower_bound(pairs.all.begin(), pairs.all.end(), last_shell, before);
    hand_out(n_workers, last - first, [&] {
        return QuartetWorker(classes, operations, libcint, pairs, bounds.data(), threshold, out, last - pairs.all.begin());
    });
}

}  // namespace tilewise
