/* DLPack, the exchange of tensors between libraries: its structs, version 1.0 (dmlc/dlpack, which fixes their layout).
 */
#ifndef ATT_PYTHON_DLPACK_H
#define ATT_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1, DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };
enum { DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2 }; /* flags */
enum {                                            /* code of a type */
       DLPACK_INT = 0,
       DLPACK_UINT = 1,
       DLPACK_FLOAT = 2,
       DLPACK_BFLOAT = 4,
       DLPACK_COMPLEX = 5,
       DLPACK_BOOL = 6,
       DLPACK_FLOAT8_E4M3FN = 10,
       DLPACK_FLOAT8_E4M3FNUZ = 11,
       DLPACK_FLOAT8_E5M2 = 12,
       DLPACK_FLOAT8_E5M2FNUZ = 13,
       DLPACK_FLOAT8_E8M0FNU = 14
};

typedef struct dlpack_device {
    int32_t type, id;
} dlpack_device;

typedef struct dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dlpack_dtype;

typedef struct dlpack_tensor {
    void *data;
    dlpack_device device;
    int32_t rank;
    dlpack_dtype dtype;
    int64_t *shape, *strides; /* strides in elements; NULL: dense, only of producers before 1.2 */
    uint64_t byte_offset;
} dlpack_tensor;

/* Capsule "dltensor" */
typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct dlpack_managed *self); /* or NULL */
} dlpack_managed;

/* Capsule "dltensor_versioned" */
typedef struct dlpack_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct dlpack_versioned *self); /* or NULL */
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

#endif
