/* The size of each public struct is that of tests/golden/struct_sizes.txt, so that no change of the binary interface
 * goes unseen. UPDATE=1 writes the table instead of comparing. */
#include "fixtures/check.h"
#include "struct_sizes.h"

static const char golden[] = "tests/golden/struct_sizes.txt";
enum { N_STRUCTS = sizeof structs / sizeof *structs };

static void write_table(void)
{
    FILE *file = fopen(golden, "w");
    assert_non_null(file);
    for (int i = 0; i < N_STRUCTS; i++)
        fprintf(file, "%s %zu\n", structs[i].name, structs[i].bytes);
    assert_int_equal(fclose(file), 0);
}

/* Returns which of the structs has this name, or -1. */
static int find(const char *name)
{
    int i = N_STRUCTS - 1;
    while (i >= 0 && strcmp(structs[i].name, name))
        i--;
    return i;
}

static void public_structs_have_the_sizes_of_the_table(void **state)
{
    (void)state;
    if (sizeof(long) != 8 || sizeof(void *) != 8)
        skip(); /* the table is that of 64-bit systems */
    const char *update = getenv("UPDATE");
    if (update && *update)
        write_table();
    FILE *file = fopen(golden, "r");
    assert_non_null(file);
    bool seen[N_STRUCTS] = {0};
    int wrong = 0;
    char name[128];
    for (size_t bytes; fscanf(file, "%127s %zu", name, &bytes) == 2;) {
        const int i = find(name);
        if (i < 0)
            print_error("%s is in the table, but not in the headers\n", name);
        else if (structs[i].bytes != bytes)
            print_error("%s has %zu bytes, but %zu in the table\n", name, structs[i].bytes, bytes);
        wrong += i < 0 || structs[i].bytes != bytes;
        if (i >= 0)
            seen[i] = true;
    }
    assert_true(feof(file));
    fclose(file);
    for (int i = 0; i < N_STRUCTS; i++)
        if (!seen[i]) {
            print_error("%s is not in the table\n", structs[i].name);
            wrong++;
        }
    if (wrong)
        fail_msg("%s: if these changes are meant, UPDATE=1 build/test_struct_sizes rewrites it", golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(public_structs_have_the_sizes_of_the_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
