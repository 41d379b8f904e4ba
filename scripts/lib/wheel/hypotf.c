// The runtime of Swift has a function that nobody here calls and that calls this one, whose version in the C library is 2.35: the only one above 2.34.
double sqrt(double);

float hypotf(float x, float y) {
    if (__builtin_isinf(x) || __builtin_isinf(y)) return __builtin_inff();
    // A product of two floats is exact in a double.
    return (float)sqrt((double)x * x + (double)y * y);
}
