/* Uses napkin from C as an installed library: one program on arrays of two sizes, and an error that a user would meet. */
#include <napkin/napkin.h>
#include <stdio.h>
#include <string.h>

static const char* const text = "double(A[i]) -> B[i]\n    B[i] = 2 * A[i]\n";

int main(void) {
    napkin_program* program = NULL;
    napkin_error* error = NULL;
    if (napkin_parse(text, strlen(text), NULL, &program, &error) != NAPKIN_OK) {
        fputs(napkin_error_text(error), stderr);
        return 1;
    }
    float A[50], B[50];
    for (int i = 0; i < 50; ++i) A[i] = (float)i;
    int64_t size = 0;
    napkin_array a;
    memset(&a, 0, sizeof a);
    a.data = A, a.device.device_type = NAPKIN_ON_CPU, a.ndim = 1, a.shape = &size;
    a.dtype = napkin_program_array_type(program, 0);
    napkin_array b = a;
    b.data = B;
    const napkin_array* arrays[] = {&a, &b};
    int wrong = 0;
    for (size = 3; size <= 50; size += 47) {
        if (napkin_call(program, arrays, 2, NULL, &error) != NAPKIN_OK) {
            fputs(napkin_error_text(error), stderr);
            return 1;
        }
        for (int64_t i = 0; i < size; ++i) wrong += B[i] != 2 * A[i];
    }
    wrong += napkin_call(program, arrays, 1, NULL, &error) != NAPKIN_BAD_INPUT || error == NULL;
    napkin_error_free(error);
    napkin_program_free(program);
    printf("napkin %s: from C, %d wrong\n", napkin_version(), wrong);
    return wrong != 0;
}
