#include "memory.hpp"

#include <cstdlib>
#include <new>

#include "pages.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#endif

namespace tilewise {

#if defined(__linux__)

namespace {

// Whole huge pages at a multiple of their size: of these the system moves the tables and not single pages.
struct Piece {
    char* at;
    std::size_t bytes;
};

std::size_t in_whole_pages(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

// Addresses without memory yet.
char* addresses(std::size_t bytes) {
    void* const found = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    char* const begin = static_cast<char*>(found);
    const std::size_t before = (huge_page - reinterpret_cast<std::size_t>(begin) % huge_page) % huge_page;
    if (before > 0) munmap(begin, before);
    munmap(begin + before + bytes, huge_page - before);
    return begin + before;
}

class Kept {
public:
    void begin() {
        const std::lock_guard<std::mutex> guard(mutex_);
        ++users_;
    }

    void end() {
        std::vector<Piece> all;
        const std::lock_guard<std::mutex> guard(mutex_);
        if (--users_ > 0 || pieces_.empty()) return;
        all.swap(pieces_);
        wait_for_thread();
        const auto give_back = [all] {
            for (const Piece& piece : all) munmap(piece.at, piece.bytes);
        };
        try {
            thread_ = new std::thread(give_back);
            process_ = getpid();
        } catch (const std::system_error&) {  // no more threads
            give_back();
        }
    }

    void settle() {
        const std::lock_guard<std::mutex> guard(mutex_);
        wait_for_thread();
    }

    void add(Piece piece) {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            if (users_ > 0) return pieces_.push_back(piece);
        }
        munmap(piece.at, piece.bytes);
    }

    // Moves kept pages to the beginning of some addresses; how many bytes.
    std::size_t move_to(char* at, std::size_t bytes) {
        const std::lock_guard<std::mutex> guard(mutex_);
        std::size_t filled = 0;
        while (filled < bytes && !pieces_.empty()) {
            Piece& last = pieces_.back();
            const std::size_t part = std::min(last.bytes, bytes - filled);
            char* const from = last.at + last.bytes - part;
            if (mremap(from, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, at + filled) == MAP_FAILED) {
                // The addresses may be free by now, and anybody's.
                if (mmap(at + filled, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
                    throw std::bad_alloc();
                break;
            }
            filled += part;
            last.bytes -= part;
            if (last.bytes == 0) pieces_.pop_back();
        }
        return filled;
    }

private:
    // In a copy of the process that began the thread there is no such thread.
    void wait_for_thread() {
        if (!thread_ || process_ != getpid()) return;
        thread_->join();
        delete std::exchange(thread_, nullptr);
    }

    std::mutex mutex_;
    std::vector<Piece> pieces_;
    std::thread* thread_ = nullptr;
    pid_t process_ = 0;
    int users_ = 0;
};

// Never destroyed, for arrays may outlive everything else.
Kept& kept() {
    static Kept& only = *new Kept;
    return only;
}

}  // namespace

NewMemory take_memory(std::size_t bytes) {
    const std::size_t size = in_whole_pages(bytes);
    char* const at = addresses(size);
    const std::size_t moved = kept().move_to(at, size);
    choose_pages(at + moved, size - moved);
    return {at, std::min(moved, bytes)};
}

void give_memory(void* at, std::size_t bytes) { kept().add({static_cast<char*>(at), in_whole_pages(bytes)}); }

void keep_pages() { kept().begin(); }

void give_pages_back() { kept().end(); }

void settle_memory() { kept().settle(); }

#else

NewMemory take_memory(std::size_t bytes) {
    void* const at = std::calloc(bytes, 1);
    if (!at) throw std::bad_alloc();
    return {at, 0};
}

void give_memory(void* at, std::size_t) { std::free(at); }

void keep_pages() {}

void give_pages_back() {}

void settle_memory() {}

#endif

}  // namespace tilewise
