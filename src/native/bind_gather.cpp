// Binds `gather`: elements of a tensor to other places, wherever sums of two addresses say that they are.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>

#include "crew.hpp"

namespace nb = nanobind;

namespace {

using Numbers = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// out[place + strides . (u, x, w)] += scale * factors * source[one[...] + other[...]]; tilewise.tensor.gather has the fields.
struct Job {
    std::int64_t extent[3], place, stride[3], one, one_stride[3], other, other_stride[3];
};
using Jobs = nb::ndarray<const std::int64_t, nb::shape<-1, 15>, nb::c_contig, nb::device::cpu>;

// The places of a side that a job reads, or writes, lie inside of it.
bool lies_inside(std::int64_t first, const std::int64_t* strides, const std::int64_t* extent, std::int64_t length) {
    std::int64_t low = first, high = first;
    for (int k = 0; k < 3; ++k) (strides[k] < 0 ? low : high) += strides[k] * (extent[k] - 1);
    return low >= 0 && high < length;
}

struct Side {
    const std::int64_t* address;
    const double* factor;
};

struct Source {
    const double* at;
    std::int64_t length;
};

void gather_one(const Job& job, const Side& one, const Side& other, const Source& source, double scale, double* out) {
    for (std::int64_t u = 0; u < job.extent[0]; ++u)
        for (std::int64_t x = 0; x < job.extent[1]; ++x) {
            double* to = out + job.place + u * job.stride[0] + x * job.stride[1];
            const std::int64_t p = job.one + u * job.one_stride[0] + x * job.one_stride[1];
            const std::int64_t q = job.other + u * job.other_stride[0] + x * job.other_stride[1];
            const std::int64_t s = job.stride[2], ps = job.one_stride[2], qs = job.other_stride[2];
            for (std::int64_t w = 0; w < job.extent[2]; ++w) {
                const std::int64_t a = p + w * ps, b = q + w * qs;
                const std::int64_t from = one.address[a] + other.address[b];
                if (from < 0 || from >= source.length) throw std::invalid_argument("an address points outside of the source");
                to[w * s] += scale * one.factor[a] * other.factor[b] * source.at[from];
            }
        }
}

void gather(const Jobs& jobs, const Reals& source, const Integers& one, const Reals& one_factor, const Integers& other,
            const Reals& other_factor, double scale, Numbers out, std::int64_t workers) {
    if (one.shape(0) != one_factor.shape(0) || other.shape(0) != other_factor.shape(0))
        throw std::invalid_argument("every address needs a factor");
    const auto count = static_cast<std::int64_t>(jobs.shape(0));
    const Job* first = reinterpret_cast<const Job*>(jobs.data());
    const auto length = [](const auto& array) { return static_cast<std::int64_t>(array.shape(0)); };
    for (const Job* job = first; job < first + count; ++job) {
        if (std::any_of(job->extent, job->extent + 3, [](std::int64_t n) { return n <= 0; }))
            throw std::invalid_argument("a job has no elements");
        if (!lies_inside(job->place, job->stride, job->extent, length(out)) ||
            !lies_inside(job->one, job->one_stride, job->extent, length(one)) ||
            !lies_inside(job->other, job->other_stride, job->extent, length(other)))
            throw std::invalid_argument("a job points outside of its arrays");
    }
    const nb::gil_scoped_release release;
    const Side left{one.data(), one_factor.data()}, right{other.data(), other_factor.data()};
    constexpr std::int64_t at_once = 16;
    tilewise::hand_out(workers, (count + at_once - 1) / at_once, [&] {
        return [&](std::int64_t k) {
            for (std::int64_t j = k * at_once; j < std::min(count, (k + 1) * at_once); ++j)
                gather_one(first[j], left, right, {source.data(), length(source)}, scale, out.data());
        };
    });
}

}  // namespace

void bind_gather(nb::module_& m) {
    m.def("gather", &gather, nb::arg("jobs"), nb::arg("source"), nb::arg("one"), nb::arg("one_factor"), nb::arg("other"),
          nb::arg("other_factor"), nb::arg("scale"), nb::arg("out"), nb::arg("workers"),
          "Adds elements of a source, each found by the sum of two addresses, to an array; jobs must not overlap.");
}
