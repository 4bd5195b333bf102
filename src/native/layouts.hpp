// What the records look like, told field by field: Python compares its own record types with this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewise {

struct Field {
    std::string name;
    std::int64_t offset;
    char type;  // 'i' for a whole number of eight bytes, 'f' for a double
    std::int64_t count;
};

struct RecordLayout {
    std::string name;
    std::int64_t size;
    std::vector<Field> fields;
};

std::vector<RecordLayout> record_layouts();

}  // namespace tilewise
