/* Slices of texts and lists, as Python has them. */
#include "jinja/access.h"
#include "jinja/string.h"

/* Returns a bound of a slice, as Python clips it. */
static int64_t bound(att_jinja_state *s, att_jinja_value v, int64_t missing, int64_t n, int64_t low, int64_t high)
{
    if (v.type == ATT_JINJA_NONE)
        return missing;
    int64_t at = att_jinja_integer(s, v, "a bound of a slice");
    at += at < 0 ? n : 0;
    return at < low ? low : at > high ? high : at;
}

att_jinja_value att_jinja_slice(att_jinja_state *s, att_jinja_value v, const att_jinja_value part[3])
{
    const int64_t step = part[2].type == ATT_JINJA_NONE ? 1 : att_jinja_integer(s, part[2], "the step of a slice");
    if (v.type == ATT_JINJA_UNDEFINED || (v.type != ATT_JINJA_STRING && !att_jinja_is_list(v)))
        att_jinja_fail(s, "a %s has no slices", att_jinja_type_name(v.type));
    if (step == 0)
        att_jinja_fail(s, "the step of a slice is 0");
    const int64_t n = att_jinja_length(s, v);
    const int64_t begin = step > 0 ? bound(s, part[0], 0, n, 0, n) : bound(s, part[0], n - 1, n, -1, n - 1);
    const int64_t end = step > 0 ? bound(s, part[1], n, n, 0, n) : bound(s, part[1], -1, n, -1, n - 1);
    if (v.type == ATT_JINJA_STRING && step == 1) {
        const size_t from = att_jinja_offset(v.string, (size_t)begin);
        const size_t to = end > begin ? att_jinja_offset(v.string, (size_t)end) : from;
        return att_jinja_string_value(att_jinja_part(s, v.string, from, to));
    }
    const att_jinja_list *all = att_jinja_iterate(s, v).list;
    const att_jinja_value list = att_jinja_list_new(s, v.type == ATT_JINJA_TUPLE ? v.type : ATT_JINJA_LIST);
    att_jinja_builder b = {.s = s};
    for (int64_t at = begin; step > 0 ? at < end : at > end;) {
        if (v.type == ATT_JINJA_STRING)
            att_jinja_add_string(&b, all->item[at].string);
        else
            att_jinja_push(s, list, all->item[at]);
        if (step > n || step < -n)
            break;
        at += step;
    }
    return v.type == ATT_JINJA_STRING ? att_jinja_built_value(&b) : list;
}
