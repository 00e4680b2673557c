/* Captions of images: each format, what the counts say, and that what is wrong or hostile is refused with a sentence.
 */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder_context.h"
#include "fixtures/real_files.h"

#include "attend_caption.h"
#include "caption/plain_words.h"

#include <zlib.h>

static void write_bytes(const char *name, const char *text, size_t bytes)
{
    FILE *f = folder_open(&folder, name);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static att_caption_set *open_set(const char *text, const att_caption_set_options *options)
{
    att_caption_set *s;
    if (text)
        folder_write(&folder, "captions", text);
    if (att_caption_set_open(ctx, path_of("captions"), options, &s))
        fail_msg("%s", att_error(ctx));
    return s;
}

static void check_refused_bytes(const char *text, size_t bytes, const att_caption_set_options *options,
                                const char *says)
{
    att_caption_set *s;
    write_bytes("captions", text, bytes);
    if (!att_caption_set_open(ctx, path_of("captions"), options, &s) || s || !strstr(att_error(ctx), says))
        fail_msg("\"%s\": expected \"%s\"", att_error(ctx), says);
}

static void check_refused(const char *text, const char *says) { check_refused_bytes(text, strlen(text), NULL, says); }

static att_caption_set_info describe(const att_caption_set *s)
{
    att_caption_set_info info = {.size = sizeof info};
    assert_int_equal(att_caption_set_describe(s, &info), ATT_OK);
    return info;
}

/* ---- columns */

static void columns_are_found_by_name_or_number(void **state)
{
    (void)state;
    static const char german[] =
        "Nr;Dateiname;Beschreibung\n1;a.png;Ein Hund; der bellt\n2;b.png;\"Eine Katze; müde\"\n",
                      plain[] = "1,a.png,A dog\n2,b.png,A cat\n";
    att_caption_set *s = open_set(german, ATT_OPTIONS(att_caption_set_options, .image_column = "dateiname",
                                                      .caption_column = "3", .skip_bad_lines = 1));
    assert_int_equal(describe(s).images, 1);
    assert_string_equal(att_caption_set_path(s, 0), "b.png");
    assert_string_equal(att_caption_set_caption(s, 0, 0), "eine katze müde");
    att_caption_set_free(s);
    s = open_set(plain, ATT_OPTIONS(att_caption_set_options, .image_column = "2", .caption_column = "3"));
    assert_int_equal(describe(s).images, 2); /* two numbers: there is no header */
    assert_string_equal(att_caption_set_caption(s, 0, 0), "a dog");
    att_caption_set_free(s);
    s = open_set("caption,filename,photo\nA dog,x,a.png\n",
                 ATT_OPTIONS(att_caption_set_options, .image_column = "photo"));
    assert_string_equal(att_caption_set_path(s, 0), "a.png");
    att_caption_set_free(s);
    check_refused_bytes(german, sizeof german - 1, ATT_OPTIONS(att_caption_set_options, .image_column = "Bild"),
                        "there is no column \"Bild\"; the columns are \"Nr\", \"Dateiname\", \"Beschreibung\"");
    check_refused_bytes(plain, sizeof plain - 1,
                        ATT_OPTIONS(att_caption_set_options, .image_column = "2", .caption_column = "4"),
                        "there is no column \"4\"; the columns are \"1\", \"a.png\", \"A dog\"");
    check_refused_bytes("{\"images\": [], \"annotations\": []}", 33,
                        ATT_OPTIONS(att_caption_set_options, .image_column = "x"),
                        "JSON, which has no columns to name");
}

static void images_are_found_in_folders_of_the_folder(void **state)
{
    (void)state;
    const char *const options_images = path_of("photos");
    char images[256], expected[288];
    snprintf(images, sizeof images, "%s", options_images);
    folder_write(&folder, "photos/2020/a.png", "");
    folder_write(&folder, "photos/2021/b.png", "");
    folder_write(&folder, "photos/2021/a.png", "");
    folder_write(&folder, "photos/c.png", "");
    folder_write(&folder, "photos/2021/c.png", "");
    folder_write(&folder, "photos/2021/d.png", "");
    const att_caption_set_options o = {.size = sizeof o, .images = images};
    att_caption_set *s = open_set("b.png\tA cat\nc.png\tA dog\ne.png\tNone\n", &o);
    assert_int_equal(describe(s).images, 2);
    assert_int_equal(describe(s).missing, 1);
    assert_int_equal(describe(s).uncaptioned, 3);
    snprintf(expected, sizeof expected, "%s/2021/b.png", images);
    assert_string_equal(att_caption_set_path(s, 0), expected);
    snprintf(expected, sizeof expected, "%s/c.png", images); /* rather than that of a folder */
    assert_string_equal(att_caption_set_path(s, 1), expected);
    att_caption_set_free(s);
    check_refused_bytes("a.png\tA cat\n", 12, &o, "have the name \"a.png\"");
}

/* ---- words */

static void words_are_letters_and_digits_in_lower_case(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        int64_t n;
    } cases[] = {
        {"A child in a pink dress .", "a child in a pink dress", 6},
        {" Two\tdogs , \"running\" !\r", "two dogs running", 3},
        {"a T-shirt; the man's 2nd", "a tshirt the mans 2nd", 5},
        {"", "", 0},
        {". ... - _ $ +", "", 0},
        {"\xC3\x84pfel \xC3\x9C"
         "ber \xCE\xA3\xCE\x91",
         "\xC3\xA4pfel \xC3\xBC"
         "ber \xCF\x83\xCE\xB1",
         3}, /* Äpfel Über ΣΑ */
        {"\xE7\x8A\xAC\xE3\x80\x82\xE3\x80\x80\xE7\x8C\xAB", "\xE7\x8A\xAC \xE7\x8C\xAB",
         2}, /* dog, full stop, wide space, cat */
        {"\xE2\x80\x9C"
         "a\xE2\x80\x9D\xC2\xA0"
         "b \xF0\x9F\x90\x95",
         "a b", 2},                                      /* quotes, no-break space, an emoji */
        {"e\xCC\x81t\xC3\xA9", "e\xCC\x81t\xC3\xA9", 1}, /* a mark stays */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_bytes out = {.ctx = ctx};
        assert_int_equal(att_plain_words((att_byte_view){cases[i].text, strlen(cases[i].text)}, &out), cases[i].n);
        att_bytes_add(&out, "", 1);
        assert_string_equal(out.data, cases[i].words);
        att_bytes_free(&out);
    }
}

/* ---- formats */

/* Both captions of 1.jpg, and the one of 2.jpg, in any format. */
static void check_three(const char *text, const char *format)
{
    att_caption_set *s = open_set(text, NULL);
    const att_caption_set_info info = describe(s);
    assert_string_equal(info.format, format);
    assert_int_equal(info.images, 2);
    assert_int_equal(info.captions, 3);
    assert_int_equal(info.max_captions, 2);
    assert_int_equal(info.max_words, 4);
    assert_string_equal(att_caption_set_path(s, 0), "1.jpg");
    assert_string_equal(att_caption_set_path(s, 1), "2.jpg");
    assert_int_equal(att_caption_set_count(s, 0), 2);
    assert_string_equal(att_caption_set_caption(s, 0, 0), "a dog runs");
    assert_string_equal(att_caption_set_caption(s, 0, 1), "two dogs a cat");
    assert_string_equal(att_caption_set_caption(s, 1, 0), "grass");
    assert_null(att_caption_set_path(s, 2));
    assert_null(att_caption_set_path(s, -1));
    assert_null(att_caption_set_caption(s, 0, 2));
    assert_null(att_caption_set_caption(s, 0, -1));
    assert_null(att_caption_set_caption(s, 2, 0));
    assert_int_equal(att_caption_set_count(s, 2), 0);
    att_caption_set_free(s);
}

static void each_format_is_found_by_its_content(void **state)
{
    (void)state;
    check_three("1.jpg#0\tA dog runs .\n2.jpg#0\tGrass\n1.jpg#1\tTwo dogs , a cat\n", "Flickr8k.token");
    check_three("\xEF\xBB\xBF"
                "1.jpg#0\tA dog runs .\r\n\r\n2.jpg#10\tGrass\r\n1.jpg#1\tTwo dogs , a cat",
                "Flickr8k.token");
    check_three("1.jpg\tA dog runs .\n2.jpg\tGrass\n1.jpg\tTwo dogs,\ta cat\n", "tabs");
    check_three("image,caption\n1.jpg,A dog runs .\n2.jpg,Grass\n1.jpg,\"Two \"\"dogs\"\", a cat\"\n", "CSV");
    check_three("number,comment,image_name\n0,A dog runs,1.jpg\n0,Grass,2.jpg\n1,\"Two dogs, a cat\",1.jpg\n", "CSV");
    check_three("image,caption\r\n1.jpg,A dog runs .\r\n2.jpg,Grass\r\n1.jpg,\"Two \"\"dogs\"\", a cat\"\r\n", "CSV");
    check_three("\xEF\xBB\xBF"
                "\"image\";\"caption\"\r1.jpg;\"A dog\rruns .\"\r;\r2.jpg;Grass\r1.jpg;Two dogs, a cat",
                "CSV");
    check_three("image\tcaption\n1.jpg\tA dog runs .\n2.jpg\tGrass\n1.jpg\tTwo \"dogs\", a cat\n", "tabs");
    check_three(
        "{\"info\": {\"images\": [1, \"]\"]}, \"annotations\": [{\"image_id\": 70, \"id\": 1, \"caption\": \"A dog "
        "runs.\"}, {\"image_id\": 8, \"caption\": \"Grass\"}, {\"image_id\": 70, \"caption\": \"Two \\u0064ogs, a "
        "cat\"}], \"licenses\": [], \"images\": [{\"id\": 70, \"file_name\": \"1.jpg\", \"height\": 5}, {\"id\": 8, "
        "\"file_name\": \"2.jpg\"}]}\n",
        "COCO");
}

static void malformed_lines_are_left_out_as_far_as_they_may(void **state)
{
    (void)state;
    static const char text[] = "image,caption\n1.jpg,A dog\n2.jpg\n2.jpg,\"a\"b\n../3.jpg,c\n4.jpg,\n5.jpg,Grass\n";
    att_caption_set *s = open_set(text, ATT_OPTIONS(att_caption_set_options, .skip_bad_lines = 3));
    const att_caption_set_info info = describe(s);
    assert_int_equal(info.images, 2);
    assert_int_equal(info.skipped, 3);
    assert_int_equal(info.empty, 1);
    assert_non_null(strstr(info.bad, "line 3: 1 field, but the header has 2"));
    att_caption_set_free(s);
    check_refused_bytes(text, strlen(text), ATT_OPTIONS(att_caption_set_options, .skip_bad_lines = 2),
                        "line 5: the image \"../3.jpg\" is not in the folder of images");
}

static void a_packed_file_is_read(void **state)
{
    (void)state;
    gzFile f = gzopen(path_of("captions"), "wb");
    gzputs(f, "1.jpg\tA dog runs\n2.jpg\tgrass\n1.jpg\tTwo dogs, a cat");
    assert_int_equal(gzclose(f), Z_OK);
    check_three(NULL, "tabs");
}

static void captions_stay_as_typed_if_wanted(void **state)
{
    (void)state;
    att_caption_set *s = open_set("1.jpg\t A Dog , \"T-shirt\" .  \n1.jpg\t...\n",
                                  ATT_OPTIONS(att_caption_set_options, .keep_text = true));
    const att_caption_set_info info = describe(s);
    assert_string_equal(att_caption_set_caption(s, 0, 0), "A Dog , \"T-shirt\" .");
    assert_int_equal(info.captions, 1);
    assert_int_equal(info.empty, 1);
    assert_int_equal(info.max_words, 3);
    att_caption_set_free(s);
}

/* ---- folders and lists */

static const char four[] = "b.jpg\tb\na.png\ta\nmissing.jpg\tm\na.png\taa\nc.jpg#0\t\nb.jpg\t.\n";

static void write_images(void)
{
    folder_write(&folder, "images/a.png", "");
    folder_write(&folder, "images/b.jpg", "");
    folder_write(&folder, "images/c.jpg", "");
    folder_write(&folder, "images/other.JPG", "");
    folder_write(&folder, "images/notes.txt", "");
}

static void the_folder_says_which_images_there_are(void **state)
{
    (void)state;
    write_images();
    att_caption_set *s = open_set(four, ATT_OPTIONS(att_caption_set_options, .images = path_of("images")));
    const att_caption_set_info info = describe(s);
    assert_int_equal(info.images, 2);
    assert_int_equal(info.captions, 3);
    assert_int_equal(info.missing, 1);     /* missing.jpg */
    assert_int_equal(info.empty, 2);       /* of c.jpg, and the second of b.jpg */
    assert_int_equal(info.uncaptioned, 2); /* c.jpg, other.JPG */
    assert_string_equal(att_caption_set_path(s, 0), path_of("images/b.jpg"));
    assert_string_equal(att_caption_set_caption(s, 1, 1), "aa");
    att_caption_set_free(s);
}

static void a_list_chooses_images_in_its_order(void **state)
{
    (void)state;
    write_images();
    folder_write(&folder, "list",
                 "\xEF\xBB\xBF"
                 "a.png \r\n\nb.jpg");
    att_caption_set *s =
        open_set(four, ATT_OPTIONS(att_caption_set_options, .images = path_of("images"), .list = path_of("list")));
    assert_int_equal(describe(s).images, 2);
    assert_string_equal(att_caption_set_path(s, 0), path_of("images/a.png"));
    assert_string_equal(att_caption_set_caption(s, 0, 0), "a");
    assert_string_equal(att_caption_set_caption(s, 1, 0), "b");
    att_caption_set_free(s);
}

static void check_list_refused(const char *list, const char *says)
{
    folder_write(&folder, "list", list);
    check_refused_bytes(four, strlen(four),
                        ATT_OPTIONS(att_caption_set_options, .images = path_of("images"), .list = path_of("list")),
                        says);
}

static void what_a_list_asks_for_must_be_there(void **state)
{
    (void)state;
    write_images();
    check_list_refused("a.png\nunknown.jpg\n", "list: line 2: the image \"unknown.jpg\" has no caption in");
    check_list_refused("a.png\nc.jpg\n", "list: line 2: the image \"c.jpg\" has no caption in");
    check_list_refused("missing.jpg\n", "list: line 1: the image \"missing.jpg\" is not in the folder");
    check_list_refused("a.png\nb.jpg\na.png\n", "list: line 3: the image \"a.png\" occurs a second time");
    check_list_refused("\n \n", "list names no image; expected one on each line");
    check_refused_bytes(four, strlen(four), ATT_OPTIONS(att_caption_set_options, .list = path_of("no list")),
                        "No such file");
    check_refused_bytes(four, strlen(four), ATT_OPTIONS(att_caption_set_options, .images = path_of("no folder")),
                        "no folder: No such file");
    check_refused_bytes("x.jpg\ta\ny.jpg\tb\n", 16, ATT_OPTIONS(att_caption_set_options, .images = path_of("images")),
                        "none of the 2 images that have captions in");
    check_refused_bytes("x.jpg\ta\ny.jpg\tb\n", 16, ATT_OPTIONS(att_caption_set_options, .images = path_of("images")),
                        "one is \"x.jpg\"");
}

/* ---- what is refused */

static void another_format_is_refused(void **state)
{
    (void)state;
    check_refused("", "captions has no caption; expected lines \"NAME#K<tab>caption\"");
    check_refused("\n \n", "has no caption; expected");
    check_refused("          \n          \n          \n          \n          \n          \n          \n",
                  "has no caption; expected");
    check_refused("1.jpg a dog\n", "line 1: \"1.jpg a dog\"; expected lines");
    check_refused("1.jpg,a dog\n", "CSV whose header has the columns image and caption");
    check_refused("[{\"id\": 1}]", "expected lines");
    check_refused("1.jpg\ta dog\n2.jpg a cat\n", "line 2: there is no tab between a name and a caption");
    check_refused("1.jpg#0\ta dog\n2.jpg\ta cat\n", "line 2: the name \"2.jpg\" does not end with # and a number");
    check_refused("image,caption\n1.jpg,a, b\n",
                  "line 2: 3 fields, but the header has 2; a caption with a separator must");
    check_refused("image,caption\n1.jpg\n", "line 2: 1 field, but the header has 2");
    check_refused("image,caption\n1.jpg,\"a dog\n", "line 2: a field begins with a quote but does not end with one");
    check_refused("image,caption\n", "has no caption");
    check_refused("1.jpg\t.\n2.jpg\t...", "captions has no caption with a word");
    att_caption_set *s;
    assert_true(att_caption_set_open(ctx, folder.path, NULL, &s));
    check_message(ctx, "is not a file");
}

static void hostile_names_and_captions_are_refused(void **state)
{
    (void)state;
    char *big = malloc(70000);
    memset(big, 'a', 70000);
    memcpy(big, "1.jpg\t", 6);
    check_refused_bytes(big, 70000, NULL, "line 1: the caption has 69994 bytes, the maximum is 65536");
    memset(big, 'a', 300);
    memcpy(big + 300, "\tx\n", 3);
    check_refused_bytes(big, 303, NULL, "line 1: the name of an image has 300 bytes, the maximum is 255");
    free(big);
    check_refused("../1.jpg\ta\n",
                  "line 1: the image \"../1.jpg\" is not in the folder of images: a name may have no path");
    check_refused("a.jpg\tb\n/etc/passwd#0\ta\n", "line 2: the image \"/etc/passwd#0\" is not in");
    check_refused("..#1\ta\n", "the image \"..\" is not in");
    check_refused("a\\b.jpg\ta\n", "a name may have no path separator");
    check_refused("a\033[2J.jpg\ta\n", "the name of an image has a control character, number 27");
    check_refused("#0\ta\n", "the name of an image is empty");
    check_refused_bytes("1.jpg\ta\0b\n", 10, NULL, "line 1: the caption has a zero byte");
    check_refused_bytes("1\0.jpg\tab\n", 10, NULL, "the name of an image has a zero byte");
    check_refused("1.jpg\ta \xFF\n", "line 1: the caption is not UTF-8");
    check_refused("\xC3.jpg\ta\n", "the name of an image is not UTF-8");
}

static void damaged_json_is_refused(void **state)
{
    (void)state;
    check_refused("{", "captions has no list \"images\"; COCO's captions have \"images\" and \"annotations\"");
    check_refused("{\"images\": {}}", "has no list \"images\"");
    check_refused("{\"images\": []}", "has no list \"annotations\"");
    check_refused("{\"images\": [], \"annotations\": []}", "has no caption");
    check_refused("{\"images\": [{\"id\": 1", "captions: image 1: the file ends in it");
    check_refused("{\"images\": [{\"id\": 1}]}", "image 1: \"file_name\" is missing, not a text");
    check_refused("{\"images\": [{\"id\": 1.5}]}", "image 1: \"id\" is 1.5, not a whole number");
    check_refused("{\"images\": [{\"id\": 1, \"id\": 2}]}", "image 1: duplicate object key");
    check_refused("{\"images\": [7]}", "image 1: ");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a/b\"}]}",
                  "image 1: the image \"a/b\" is not in the folder");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a\\u0000\"}]}", "image 1: ");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, {\"id\": 2, \"file_name\": \"a\"}]}",
                  "image 2: the image \"a\" occurs a second time");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, {\"id\": 1, \"file_name\": \"b\"}]}",
                  "the images \"a\" and \"b\" both have the \"id\" 1");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a\"} {}", "the file ends in it");
    check_refused("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}}", "the list \"images\" is not closed");
    check_refused("{\"images\": [], \"annotations\": [{\"image_id\": 5, \"caption\": \"a\"}]}",
                  "annotation 1: \"image_id\" is 5, which no image has as its \"id\"");
    check_refused("{\"images\": [], \"annotations\": [{\"image_id\": 5, \"bbox\": []}]}",
                  "annotation 1: \"caption\" is missing, not a text; COCO's captions are in captions_*.json");
}

static void opening_is_cancelled(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "1.jpg\tA dog\n", "image,caption\n1.jpg,A dog\n",
        ("{\"images\": [{\"id\": 7, \"file_name\": \"1.jpg\"}], \"annotations\": [{\"image_id\": 7, \"id\": 1, "
         "\"caption\": \"A dog\"}]}")};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        volatile int flag = 1;
        att_caption_set *s;
        folder_write(&folder, "captions", formats[i]);
        att_cancel_by(&flag);
        assert_int_equal(att_caption_set_open(ctx, path_of("captions"), NULL, &s), ATT_ERR_CANCELLED);
        att_cancel_by(NULL);
        assert_null(s);
        check_message(ctx, "/captions: cancelled");
        att_caption_set_free(open_set(NULL, NULL));
    }
}

static void a_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    write_images();
    folder_write(&folder, "captions", "image,caption\nb.jpg,\"a \"\"b\"\"\"\na.png,c\n");
    folder_write(&folder, "list", "a.png\n");
    const att_caption_set_options o = {.size = sizeof o, .images = path_of("images"), .list = path_of("list")};
    const char *captions = path_of("captions");
    att_status e = ATT_ERR_MEMORY;
    for (long n = 1; e; n++) {
        fail_alloc f = {0};
        att_ctx *failing = fail_open(&f);
        att_caption_set *s;
        f.fail_at = f.calls + n;
        e = att_caption_set_open(failing, captions, &o, &s);
        assert_int_equal(e, f.calls >= f.fail_at ? ATT_ERR_MEMORY : ATT_OK);
        assert_true(!e == !!s);
        att_caption_set_free(s);
        att_close(failing);
        assert_int_equal(f.live, 0);
        assert_true(n < 100);
    }
}

/* ---- Flickr8k, where it is */

static const char *flickr8k(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "flickr8k/%s", name);
    return data_file(path);
}

static void flickr8k_has_the_captions_that_its_readme_says(void **state)
{
    (void)state;
    static const char *const lists[] = {"Flickr_8k.trainImages.txt", "Flickr_8k.devImages.txt",
                                        "Flickr_8k.testImages.txt"};
    static const int images[] = {6000, 1000, 1000};
    char captions[MAX_FILE_NAME];
    if (!flickr8k("Flickr8k.token.txt"))
        skip();
    snprintf(captions, sizeof captions, "%s", flickr8k("Flickr8k.token.txt"));
    att_caption_set *s;
    assert_int_equal(att_caption_set_open(ctx, captions, NULL, &s), ATT_OK);
    assert_int_equal(describe(s).images, 8093); /* 8,091 with a file, and two without one */
    att_caption_set_free(s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            att_caption_set_open(ctx, captions, ATT_OPTIONS(att_caption_set_options, .list = flickr8k(lists[i])), &s),
            ATT_OK);
        assert_int_equal(describe(s).images, images[i]);
        assert_int_equal(describe(s).captions, 5 * images[i]);
        att_caption_set_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_are_letters_and_digits_in_lower_case, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_format_is_found_by_its_content, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_packed_file_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(malformed_lines_are_left_out_as_far_as_they_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(captions_stay_as_typed_if_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_folder_says_which_images_there_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_chooses_images_in_its_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_list_asks_for_must_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_format_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(columns_are_found_by_name_or_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(images_are_found_in_folders_of_the_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hostile_names_and_captions_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_json_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opening_is_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_allocation_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flickr8k_has_the_captions_that_its_readme_says, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
