// Carriers: strips between ranks of one node, which workers take out of each other's memory between their tasks.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bell.hpp"
#include "gates.hpp"

namespace tilewise {

// Each rank has a box in memory that all of them share: a bell, and from `first_mark` on a mark for each transfer between ranks. The
// source of a strip marks it in the box of its target when it is ready, and the target in the box of its source when it has taken
// it, where that is waited for. A mark is the number of the run, so that nothing need be cleared between runs.
struct Box {
    static constexpr std::int64_t first_mark = 8;  // behind the bell's cache line

    std::int64_t* place;
    std::int64_t length;

    Bell bell() const { return Bell(place); }
    std::int64_t* mark(std::int64_t transfer) const {
        if (transfer < 0 || transfer >= length - first_mark) throw std::invalid_argument("a box has no mark for this transfer");
        return place + first_mark + transfer;
    }
};

// A strip that this rank takes.
struct Inbound {
    std::int64_t source, transfer;
    const double* from;
    double* to;
    std::int64_t elements;
    std::int64_t gate;   // that it opens
    std::int64_t group;  // of own tasks that must have ended before, or -1
    bool told;           // whether its source waits to hear that it has been taken
};

// A strip that other ranks take.
struct Outbound {
    std::int64_t group;                                      // of own tasks that make it, or -1
    std::int64_t gate;                                       // opened when all have taken it, or -1
    std::vector<std::pair<std::int64_t, std::int64_t>> ways;  // (target, transfer)
};

class Carrier : public Gates {
public:
    // `boxes` are those of all ranks, this one's among them. What is needed first comes first among `inbound`.
    Carrier(std::vector<std::int64_t> first, std::vector<std::int64_t> tasks, const std::vector<std::int64_t>& group_first,
            const std::vector<std::int64_t>& group_tasks, std::vector<Box> boxes, std::int64_t rank, std::int64_t run,
            std::vector<Inbound> inbound, std::vector<Outbound> outbound)
        : Gates(std::move(first), std::move(tasks), group_first, group_tasks), boxes_(std::move(boxes)),
          bell_(boxes_.at(static_cast<std::size_t>(rank)).bell()), rank_(rank), run_(run), inbound_(std::move(inbound)),
          outbound_(std::move(outbound)), held_(inbound_.size()), given_by_(static_cast<std::size_t>(n_groups()), -1),
          held_by_(static_cast<std::size_t>(n_groups()), -1) {
        for (std::size_t k = 0; k < inbound_.size(); ++k) {
            const Inbound& one = inbound_[k];
            own().mark(one.transfer);
            box(one.source).mark(one.transfer);
            check_gate(one.gate);
            held_[k] = one.group >= 0;
            if (one.group >= 0) held_by_.at(static_cast<std::size_t>(one.group)) = static_cast<std::int64_t>(k);
            wanted_.push_back(k);
        }
        for (std::size_t k = 0; k < outbound_.size(); ++k) {
            const Outbound& one = outbound_[k];
            if (one.gate >= 0) check_gate(one.gate);
            if (one.group >= 0) given_by_.at(static_cast<std::size_t>(one.group)) = static_cast<std::int64_t>(k);
            for (const auto& [target, transfer] : one.ways) {
                box(target).mark(transfer);
                own().mark(transfer);
                if (one.gate >= 0) awaited_.push_back({transfer, k});
            }
            left_.push_back(static_cast<std::int64_t>(one.ways.size()));
        }
    }

    // Tells of all that needs no task, and sees what others have told before.
    void start() {
        for (const Outbound& one : outbound_)
            if (one.group < 0) announce(one);
        something_ = true;
    }

    // For the thread that is no worker: waits for the end of the run, this long at the most; whether it has come. While
    // others wait, it takes what workers have no time for.
    bool watch(double seconds) {
        const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
        while (true) {
            const std::uint32_t woken = bell_.woken();
            if (is_over()) return true;
            if (bell_.awaited()) look();
            const auto now = Clock::now();
            if (now >= until) return false;
            bell_.wait(woken, until - now);
        }
    }

    // Takes what is ready, and opens the gates of those that waited for it. One thread at a time does; others go on.
    void look() override {
        while (bell_.has_news() || something_.load(std::memory_order_acquire)) {  // also what was told while this thread looked
            const std::unique_lock<std::mutex> lock(looking_, std::try_to_lock);
            if (!lock) return;
            bell_.hear();
            something_.store(false, std::memory_order_release);
            open_given();
            take_ready();
        }
    }

    // For afterwards: strips that were taken, their bytes, and what was told to others.
    std::int64_t gets() const { return gets_; }
    std::int64_t bytes() const { return bytes_; }
    std::int64_t told() const { return told_.load(); }
    // (begin, end) of the spans in which strips were taken, in nanoseconds of the clock.
    const std::vector<std::pair<std::int64_t, std::int64_t>>& spans() const { return spans_; }

protected:
    void group_ended(std::int64_t group) override {
        if (const std::int64_t given = given_by_[static_cast<std::size_t>(group)]; given >= 0) announce(outbound_[static_cast<std::size_t>(given)]);
        if (const std::int64_t held = held_by_[static_cast<std::size_t>(group)]; held >= 0) {
            held_[static_cast<std::size_t>(held)].store(false, std::memory_order_release);
            something_.store(true, std::memory_order_release);
        }
    }

    void hunger_begins() override {
        for (std::size_t rank = 0; rank < boxes_.size(); ++rank)
            if (static_cast<std::int64_t>(rank) != rank_) boxes_[rank].bell().await();
    }

    void hunger_ends() override {
        for (std::size_t rank = 0; rank < boxes_.size(); ++rank)
            if (static_cast<std::int64_t>(rank) != rank_) boxes_[rank].bell().cease();
    }

    void wake() override { bell_.wake(); }

private:
    const Box& own() const { return boxes_[static_cast<std::size_t>(rank_)]; }
    const Box& box(std::int64_t rank) const { return boxes_.at(static_cast<std::size_t>(rank)); }

    void check_gate(std::int64_t gate) const {
        if (gate < 0 || gate >= n_gates()) throw std::invalid_argument("no such gate");
    }

    void announce(const Outbound& one) {
        for (const auto& [target, transfer] : one.ways) tell_rank(target, transfer);
    }

    void tell_rank(std::int64_t rank, std::int64_t transfer) {
        const Box& theirs = box(rank);
        __atomic_store_n(theirs.mark(transfer), run_, __ATOMIC_RELEASE);
        theirs.bell().ring();
        told_.fetch_add(1, std::memory_order_relaxed);
    }

    bool is_marked(std::int64_t transfer) const { return __atomic_load_n(own().mark(transfer), __ATOMIC_ACQUIRE) == run_; }

    // Gates of strips that all who need them have taken.
    void open_given() {
        std::vector<std::int64_t> gates;
        const auto seen = [&](const std::pair<std::int64_t, std::size_t>& one) {
            if (!is_marked(one.first)) return false;
            if (--left_[one.second] == 0) gates.push_back(outbound_[one.second].gate);
            return true;
        };
        awaited_.erase(std::remove_if(awaited_.begin(), awaited_.end(), seen), awaited_.end());
        if (!gates.empty()) open(gates);
    }

    // Until it hears of more, which may be needed sooner.
    void take_ready() {
        for (std::size_t k = 0; k < wanted_.size() && !bell_.has_news();) {
            const Inbound& one = inbound_[wanted_[k]];
            if (held_[wanted_[k]].load(std::memory_order_acquire) || !is_marked(one.transfer)) {
                ++k;
                continue;
            }
            take(one);
            wanted_.erase(wanted_.begin() + static_cast<std::ptrdiff_t>(k));
        }
    }

    void take(const Inbound& one) {
        const std::int64_t began = now();
        std::copy_n(one.from, one.elements, one.to);
        const std::int64_t ended = now();
        if (!spans_.empty() && began <= spans_.back().second)
            spans_.back().second = ended;
        else
            spans_.push_back({began, ended});
        ++gets_;
        bytes_ += one.elements * static_cast<std::int64_t>(sizeof(double));
        open({one.gate});
        if (one.told) tell_rank(one.source, one.transfer);
    }

    static std::int64_t now() {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
    }

    std::vector<Box> boxes_;
    Bell bell_;  // of this rank
    std::int64_t rank_, run_;
    std::vector<Inbound> inbound_;
    std::vector<Outbound> outbound_;
    std::deque<std::atomic<bool>> held_;  // of each inbound strip: whether own tasks still need what was there before
    std::vector<std::int64_t> given_by_, held_by_;  // of each group: the outbound, or the inbound strip that waits for it, or -1
    std::atomic<bool> something_{false};  // whether there is something to do that nobody has rung for
    std::mutex looking_;  // of all that follows
    std::vector<std::size_t> wanted_;  // inbound strips that are left, what is needed first before others
    std::vector<std::pair<std::int64_t, std::size_t>> awaited_;  // (transfer, outbound strip) that were not taken yet
    std::vector<std::int64_t> left_;  // of each outbound strip: ranks that have not taken it
    std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
    std::int64_t gets_ = 0, bytes_ = 0;
    std::atomic<std::int64_t> told_{0};
};

}  // namespace tilewise
