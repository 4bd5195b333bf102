// Loops that are compiled for wider registers too.
#pragma once

// Compiled for wider registers too; which one is used is decided when the module is loaded: too early for the
// thread sanitizer, whose runtime the choice would call before it is there.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define TILEWISE_WIDE __attribute__((target_clones("avx2", "default")))
#define TILEWISE_WIDE_SUMS __attribute__((target_clones("fma", "default")))  // products are added without being rounded
#else
#define TILEWISE_WIDE
#define TILEWISE_WIDE_SUMS
#endif
