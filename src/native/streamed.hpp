// A kernel for products C[m, n] = alpha A[m, k] B[k, n] + beta C, row-major.
//
// dgemm packs both operands; for a narrow right-hand side the packing of A costs as much as the product. Here A is
// streamed as it lies, and only a slice of B is packed, so that it stays in cache. With AVX-512 this is at least as
// fast as dgemm for any number of columns, with AVX2 for few.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t narrow_limit = 128;         // columns up to which registers of four numbers do better than dgemm
constexpr std::int64_t streamed_least_rows = 8;    // with fewer rows,
constexpr std::int64_t streamed_least_depth = 16;  // or fewer terms of the sum, something else is faster
constexpr std::int64_t streamed_rows = 24;         // rows of A at a time, over all panels of B: what tiles' rows divide
constexpr std::int64_t streamed_depth = 256;       // rows of B that are packed at a time,
constexpr std::int64_t streamed_cols = 144;        // and columns: whole panels
constexpr std::int64_t streamed_scratch = streamed_depth * streamed_cols + 8;  // to begin at a cache line

constexpr std::int64_t most_tile_vectors = 3;               // of a tile of C, whose sums stay in registers; of as many
constexpr std::int64_t tile_rows_4[] = {0, 8, 6, 4};        // vectors as the place, the rows,
constexpr std::int64_t tile_rows_8[] = {0, 12, 12, 8};      // by how many numbers a register has

// Whether this machine has the instructions, and the shape is one for which this pays.
bool streamed_pays(std::int64_t m, std::int64_t n, std::int64_t k);

// A as it lies: rows x depth, or transposed.
struct Left {
    const double* at = nullptr;
    std::int64_t rows = 0, depth = 0, ld = 0;
    bool transposed = false;
};

// `next` is the left operand of the product that this worker computes afterwards, if that is known: it is fetched
// from memory in the meantime.
void streamed_product(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                      std::int64_t ldc, double* scratch, const Left& next);

}  // namespace tilewise
