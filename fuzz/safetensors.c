/* The input is a .safetensors file, or its JSON and its data as two sections, so that the header's length is right. An
 * accepted file must be readable from its first byte to its last. */
#include "fuzz.h"
#include "attend_model.h"

static volatile unsigned char sink;

static void touch(const att_safetensors *file, const char *name)
{
    att_tensor t;
    if (att_safetensors_get(file, name, &t))
        return;
    size_t bytes = att_dtype_size(t.dtype);
    for (int i = 0; i < t.rank; i++)
        bytes *= (size_t)t.dim[i];
    const unsigned char *data = t.data;
    fuzz_check(bytes == 0 || (uintptr_t)data % att_dtype_size(t.dtype) == 0, "a tensor is not aligned");
    if (bytes > 0)
        sink = data[0] ^ data[bytes - 1];
}

/* A file of these bytes, in aligned memory of exact size. */
static void read_file(uint64_t header, fuzz_section text, fuzz_section data)
{
    const size_t size = sizeof header + text.size + data.size;
    unsigned char *bytes;
    att_safetensors *file;
    if (posix_memalign((void **)&bytes, 8, size))
        abort();
    for (size_t i = 0; i < sizeof header; i++)
        bytes[i] = (unsigned char)(header >> 8 * i);
    if (text.size > 0)
        memcpy(bytes + sizeof header, text.data, text.size);
    if (data.size > 0)
        memcpy(bytes + sizeof header + text.size, data.data, data.size);
    if (!att_safetensors_from_memory(fuzz_context(), "input", bytes, size, &file)) {
        for (int64_t i = 0; i < att_safetensors_count(file); i++)
            touch(file, att_safetensors_name(file, i));
        touch(file, "not there");
        att_safetensors_free(file);
    } else {
        fuzz_check(!file, "refused, but with a file");
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    fuzz_section rest = {data, size};
    const fuzz_section text = fuzz_next(&rest);
    if (rest.data) {
        read_file(text.size, text, rest);
    } else if (size >= 8) {
        uint64_t header = 0;
        for (int i = 7; i >= 0; i--)
            header = header << 8 | data[i];
        read_file(header, (fuzz_section){data + 8, size - 8}, (fuzz_section){0});
    }
    return 0;
}
