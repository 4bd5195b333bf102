#include "pages.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#endif

namespace tilewise {

#if defined(__linux__)

namespace {

std::string first_word(const std::filesystem::path& file) {
    std::string word;
    std::ifstream(file) >> word;
    return word;
}

// Whether there is a balloon, the device by which host and guest share memory, that reports free pages.
bool free_memory_is_reported() {
    constexpr std::size_t reporting = 5;  // the number of this feature
    std::error_code none;  // where nothing can be read there is no such device
    std::filesystem::directory_iterator device("/sys/bus/virtio/devices", none);
    for (; device != std::filesystem::directory_iterator(); device.increment(none)) {
        const std::string features = first_word(device->path() / "features");
        if (first_word(device->path() / "device") == "0x0005" && features.size() > reporting && features[reporting] == '1') return true;
    }
    return false;
}

}  // namespace

void choose_pages(void* at, std::size_t bytes) {
    static const auto small_page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    static const int advice = free_memory_is_reported() ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
    if (bytes < 2 * huge_page) return;
    const auto begin = (reinterpret_cast<std::uintptr_t>(at) + small_page - 1) / small_page * small_page;
    const auto end = (reinterpret_cast<std::uintptr_t>(at) + bytes) / small_page * small_page;
    madvise(reinterpret_cast<void*>(begin), end - begin, advice);  // a wish: nothing depends on it
}

#else

void choose_pages(void*, std::size_t) {}

#endif

}  // namespace tilewise
