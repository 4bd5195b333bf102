// Binds memory for long arrays: in which pages it comes, and how long they are kept.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "crew.hpp"
#include "memory.hpp"
#include "pages.hpp"

namespace nb = nanobind;

namespace {

using Changed = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Made = nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t worth_sharing = std::size_t{1} << 23;  // bytes from which on it pays to start threads

struct Memory {
    explicit Memory(std::size_t size) : bytes(size), memory(tilewise::take_memory(size)) {}
    ~Memory() { tilewise::give_memory(memory.at, bytes); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::size_t bytes;
    tilewise::NewMemory memory;
};

// A part by each worker.
void clear(void* memory, std::size_t bytes, std::int64_t workers) {
    char* const at = static_cast<char*>(memory);
    if (bytes < worth_sharing) workers = 1;
    const std::size_t part = bytes / static_cast<std::size_t>(workers) + 1;
    const auto work = [&](std::int64_t w) {
        const std::size_t first = std::min(static_cast<std::size_t>(w) * part, bytes);
        std::memset(at + first, 0, std::min(part, bytes - first));
    };
    tilewise::on_crew(workers, work, [] {});
}

// How much of an array is written at once: nothing, what is not zero by itself, or all.
enum class Cleared { nothing, used_before, all };

Made numbers(std::size_t count, int how, std::int64_t workers) {
    Memory* const made = new Memory(std::max<std::size_t>(count, 1) * sizeof(double));
    nb::capsule owner(made, [](void* gone) noexcept { delete static_cast<Memory*>(gone); });
    const auto cleared = static_cast<Cleared>(how);
    if (cleared != Cleared::nothing) {
        const nb::gil_scoped_release others_go_on;
        clear(made->memory.at, cleared == Cleared::all ? made->bytes : made->memory.used_before, workers);
    }
    return Made(made->memory.at, {count}, owner);
}

}  // namespace

void bind_memory(nb::module_& m) {
    m.def("numbers", &numbers, nb::arg("count"), nb::arg("cleared"), nb::arg("workers"),
          "Long arrays: whatever the memory held before (0), zeros (1), or zeros that are all written (2).");
    m.def("keep_pages", &tilewise::keep_pages, "Until as many calls of `give_pages_back`, pages of arrays that are gone serve new ones.");
    m.def("give_pages_back", &tilewise::give_pages_back, "Lets go of the pages that were kept.");
    m.def("settle_memory", &tilewise::settle_memory, nb::call_guard<nb::gil_scoped_release>(),
          "Waits until pages that were let go are free.");
    m.def("choose_pages", [](Changed numbers) { tilewise::choose_pages(numbers.data(), numbers.shape(0) * sizeof(double)); },
          nb::arg("numbers"), "Asks for huge pages or small ones for numbers that nobody has written yet, whichever come sooner.");
}
