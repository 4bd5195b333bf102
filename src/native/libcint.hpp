// Electron repulsion integrals over the shells of a molecule: libcint's own functions, called through their addresses.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewise {

// libcint's interface. Without `out`, an integral answers with the doubles that its `cache` must have; else with 0 if all
// is zero. Without `dims`, the integrals of four shells lie one after the other, those of the first shell closest together.
using IntegralPointer = int (*)(double* out, int* dims, int* shells, int* atm, int natm, int* bas, int nbas, double* env,
                                void* optimizer, double* cache);
using OptimizerPointer = void (*)(void** optimizer, int* atm, int natm, int* bas, int nbas, double* env);
using ReleasePointer = void (*)(void** optimizer);

// A molecule in libcint's tables, which are copied. `cartesian` says which functions `integral` is over.
class Libcint {
public:
    Libcint(IntegralPointer integral, OptimizerPointer optimizer, ReleasePointer release, bool cartesian,
            std::vector<int> atm, std::vector<int> bas, std::vector<double> env);
    ~Libcint();
    Libcint(const Libcint&) = delete;
    Libcint& operator=(const Libcint&) = delete;

    std::int64_t n_shells() const { return static_cast<std::int64_t>(first_.size()) - 1; }
    std::int64_t n_functions() const { return first_.back(); }
    std::int64_t first(std::int64_t shell) const { return first_[shell]; }  // function; for n_shells: behind the last one
    std::int64_t size(std::int64_t shell) const { return first_[shell + 1] - first_[shell]; }
    std::int64_t largest_size() const { return largest_size_; }
    std::int64_t cache_size() const { return cache_size_; }  // doubles, enough for any four shells

    // Fills `out` with the integrals of four shells; false if libcint finds that all are zero.
    bool operator()(const std::int64_t (&shells)[4], double* out, double* cache) const;

private:
    int call(int (&shells)[4], double* out, double* cache) const;
    void check() const;
    std::int64_t largest_cache() const;

    IntegralPointer integral_;
    ReleasePointer release_;
    // libcint asks for addresses of what it may write to, and only reads.
    mutable std::vector<int> atm_, bas_;
    mutable std::vector<double> env_;
    std::vector<std::int64_t> first_;
    std::int64_t largest_size_ = 0, cache_size_ = 0;
    void* optimizer_ = nullptr;
};

// Integrals of four shells after another, in memory of its own: each thread has one.
class Quartets {
public:
    explicit Quartets(const Libcint& libcint);

    // (ij|kl) over the functions of four shells, at ((l * nk + k) * nj + j) * ni + i, until the next call; null if libcint
    // finds that all are zero.
    const double* operator()(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l);

private:
    const Libcint& libcint_;
    std::vector<double> values_, cache_;
};

// (mu nu|mu nu) for mu >= nu, packed.
void diagonal(const Libcint& libcint, double* out, std::int64_t n_workers);

// Of each pair of shells (a square matrix) the bound sqrt(max |(ij|ij)|): no |(ij|kl)| is larger than the product of two.
void schwarz(const Libcint& libcint, double* out, std::int64_t n_workers);

}  // namespace tilewise
