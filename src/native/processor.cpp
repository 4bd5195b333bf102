#include "processor.hpp"

#include <algorithm>

namespace tilewise {

namespace {

int available() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return wide ? 8 : 4;
#else
    return 1;
#endif
}

int in_use = available();

}  // namespace

int register_lanes() { return in_use; }

void use_register_lanes(int most) {
    const int wanted = std::min(most, available());
    in_use = wanted >= 8 ? 8 : wanted >= 4 ? 4 : 1;
}

}  // namespace tilewise
