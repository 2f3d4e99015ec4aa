inline float wide(float x)
{
    return (double)x;
}
