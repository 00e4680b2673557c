#include "image_panel.h"
#include "cli/base/command.h"
#include "svg.h"

#include <math.h>

double image_panel_scale(const att_image *image, double longest)
{
    const double scale = longest / (double)(image->height > image->width ? image->height : image->width);
    return scale < 1 ? scale : floor(2 * scale) / 2;
}

/* Draws the image, enlarged to twice the size of the drawing, because not all programs that show an SVG keep the edges
 * of pixels sharp. */
static att_status draw(FILE *f, const image_panel *p, const att_image *image)
{
    const bool smaller = p->height < (double)image->height;
    att_image large;
    att_image_bytes png;
    att_status s = att_image_resize(p->ctx, image, (int64_t)(2 * p->height), (int64_t)(2 * p->width),
                                    smaller ? ATT_IMAGE_FILTER_BILINEAR : ATT_IMAGE_FILTER_NEAREST, &large);
    if (s != ATT_OK)
        return s;
    s = att_image_encode_png(p->ctx, &large, &png);
    att_image_free(p->ctx, &large);
    if (s != ATT_OK)
        return s;
    svg_image(f, p->left, p->top, p->width, p->height, png.data, png.bytes);
    att_image_bytes_free(p->ctx, &png);
    return ATT_OK;
}

int image_panel_draw(FILE *f, const image_panel *p) { return cli_status(p->ctx, draw(f, p, p->image)); }

int image_panel_draw_pale(FILE *f, const image_panel *p)
{
    att_image gray;
    att_status s = att_image_convert(p->ctx, p->image, 1, &gray);
    if (s == ATT_OK) {
        svg_layer(f, 0.6);
        s = draw(f, p, &gray);
        svg_layer_end(f);
        att_image_free(p->ctx, &gray);
    }
    return cli_status(p->ctx, s);
}

void image_panel_draw_weights(FILE *f, const image_panel *p, int64_t rows, int64_t columns, const double cell[2],
                              const float *weights, const chart_axis *scale)
{
    svg_layer(f, 0.7);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double w = (double)weights[i * columns + j];
            char tip[64];
            snprintf(tip, sizeof tip, "row %lld, column %lld: %.4f", (long long)i, (long long)j, w);
            svg_rect(f, p->left + (double)j * cell[1], p->top + (double)i * cell[0], cell[1], cell[0], 0,
                     color_ramp(w / scale->high), tip);
        }
    svg_layer_end(f);
}
