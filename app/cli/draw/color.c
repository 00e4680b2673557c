#include "color.h"
#include "cli/base/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const color color_ink = {0x24, 0x29, 0x33}, color_pale = {0x6b, 0x72, 0x80}, color_card = {0xff, 0xff, 0xff};

/* Chroma and hue (degrees) of OKLab at even steps of t; lightness is a straight line. */
static const struct {
    double chroma, hue;
} stops[] = {{0.008, 140}, {0.070, 158}, {0.100, 182}, {0.108, 222}, {0.122, 255}, {0.115, 275}, {0.080, 285}};
enum { LAST_STOP = sizeof stops / sizeof *stops - 1 };
static const double lightest = 0.975, darkest = 0.27;

/* Converts OKLab to linear sRGB and back: Ottosson 2020, https://bottosson.github.io/posts/oklab/ */
static uint8_t encode(double linear)
{
    double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
    return (uint8_t)lround(255 * fmin(fmax(v, 0), 1));
}

static double decode(uint8_t byte)
{
    double v = byte / 255.0;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

color color_ramp(double t)
{
    t = t > 0 ? fmin(t, 1) : 0;
    int i = t < 1 ? (int)(t * LAST_STOP) : LAST_STOP - 1;
    double part = t * LAST_STOP - i, degree = acos(-1) / 180;
    double chroma = stops[i].chroma + part * (stops[i + 1].chroma - stops[i].chroma);
    double hue = (stops[i].hue + part * (stops[i + 1].hue - stops[i].hue)) * degree;
    double L = lightest + t * (darkest - lightest), a = chroma * cos(hue), b = chroma * sin(hue);
    double l = pow(L + 0.3963377774 * a + 0.2158037573 * b, 3);
    double m = pow(L - 0.1055613458 * a - 0.0638541728 * b, 3);
    double s = pow(L - 0.0894841775 * a - 1.2914855480 * b, 3);
    return (color){encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
                   encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
                   encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

double color_lightness(color c)
{
    double r = decode(c.r), g = decode(c.g), b = decode(c.b);
    return 0.2104542553 * cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) +
           0.7936177850 * cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) -
           0.0040720468 * cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
}

int terminal_colors(FILE *f)
{
    const char *no_color = getenv("NO_COLOR"), *depth = getenv("COLORTERM");
    if (!cli_has_controls(f) || (no_color && *no_color))
        return 0;
    return depth && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0) ? 1 << 24 : 256;
}

/* Returns the nearest of the six levels 0, 95, 135, 175, 215, 255 of the 256-color cube. */
static int cube(uint8_t v) { return v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40; }

void terminal_color(FILE *f, int colors, int layer, color c)
{
    char sequence[32];
    if (colors > 256)
        snprintf(sequence, sizeof sequence, "\033[%d;2;%d;%d;%dm", layer, c.r, c.g, c.b);
    else
        snprintf(sequence, sizeof sequence, "\033[%d;5;%dm", layer, 16 + 36 * cube(c.r) + 6 * cube(c.g) + cube(c.b));
    cli_terminal_control(f, sequence);
}

void terminal_color_end(FILE *f) { cli_terminal_control(f, "\033[0m"); }
