/* The page at "/": the models, and a box to try each. It asks the routes as any other client does. */
#include "routes.h"

#include <stdlib.h>

/* clang-format off */
/* In two parts, as C compilers need not have longer strings. */
static const char page[] =
    "<!doctype html>\n"
    "<html lang=\"en\"><meta charset=\"utf-8\"><title>attend serve</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<style>body{font:16px sans-serif;max-width:44em;margin:2em auto;padding:0 1em}textarea,input{font:inherit}\n"
    "textarea{width:100%;box-sizing:border-box}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;max-height:20em;overflow:auto}\n"
    ".error{color:#b00}</style>\n"
    "<h1>attend serve</h1>\n"
    "<p><label>Key, if the server needs one: <input id=\"key\" type=\"password\" autocomplete=\"off\"></label></p>\n"
    "<div id=\"models\">The models are read.</div>\n"
    "<p><a href=\"/openapi.json\">The routes and their fields</a></p>\n"
    "<script>\n"
    "const lines = t => t.split('\\n').map(x => x.trim()).filter(x => x);\n"
    "const names = list => list.map(x => x.score.toFixed(4) + '  ' + x.label).join('\\n');\n"
    "// Of each kind: what its box is for, and what it asks, as [path, body, text of the answer].\n"
    "const kinds = {\n"
    "  'sentence model': ['A text; or lines: how similar the others are to the first', t => lines(t).length < 2 ?\n"
    "    ['/embed', {inputs: t}, a => a[0].length + ' numbers: ' + a[0].join(' ')] :\n"
    "    ['/similarity', {inputs: {source_sentence: lines(t)[0], sentences: lines(t).slice(1)}},\n"
    "      a => a.map((x, i) => x.toFixed(4) + '  ' + lines(t)[i + 1]).join('\\n')]],\n"
    "  'text classifier': ['A text; if the model ranks: a query, then a document a line', (t, m) => m.labels > 1 ?\n"
    "    ['/classify', {input: t}, a => names(a.data[0])] :\n"
    "    ['/rerank', {query: lines(t)[0] || '', texts: lines(t).slice(1), return_text: true},\n"
    "      a => a.map(x => x.score.toFixed(4) + '  ' + x.text).join('\\n')]],\n"
    "  'translator': ['A text to translate', (t, m) => ['/translate',\n"
    "    {q: t, source: m.source || 'auto', target: m.target || '?'}, a => a.translatedText]],\n"
    "  'language model': ['A message, or the beginning of a text', (t, m) => m.chat ?\n"
    "    ['/v1/chat/completions', {messages: [{role: 'user', content: t}], max_tokens: 128},\n"
    "      a => a.choices[0].message.content] :\n"
    "    ['/v1/completions', {prompt: t, max_tokens: 64}, a => t + a.choices[0].text]],\n"
    "  'vision model': ['', t => ['/classify', {image: t, top_k: 5}, a => names(a.data[0])]],\n"
    "  'captioner': ['', t => ['/caption', {image: t}, a => a.data[0].caption]],\n"
    "  'recommender': ['The ids of items, the last one last', t => ['/recommend',\n"
    "    {history: t.split(/\\s+/).filter(x => x)},\n"
    "    a => a.items.map(x => x.score.toFixed(4) + '  ' + x.id).join('\\n')]],\n"
    "};\n";
static const char script[] =
    "const make = (name, to, text) => { const e = document.createElement(name); if (text) e.textContent = text;\n"
    "  to.append(e); return e; };\n"
    "const show = (out, text, wrong) => { out.textContent = text; out.className = wrong ? 'error' : ''; };\n"
    "const read = file => new Promise((done, fail) => { const r = new FileReader(); r.onload = () => done(r.result);\n"
    "  r.onerror = () => fail(r.error); r.readAsDataURL(file); });\n"
    "// Asks a route; throws an error with its sentence if it refuses.\n"
    "async function ask(path, body) {\n"
    "  const key = document.getElementById('key').value, headers = {};\n"
    "  if (key) headers.Authorization = 'Bearer ' + key;\n"
    "  if (body) headers['Content-Type'] = 'application/json';\n"
    "  const a = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body)});\n"
    "  const answer = await a.json();\n"
    "  if (!a.ok) throw new Error(path + ' ' + a.status + ': ' + (answer.error.message || answer.error));\n"
    "  return answer;\n"
    "}\n"
    "async function run(model, box, button, out) {\n"
    "  button.disabled = true;\n"
    "  show(out, '...');\n"
    "  try {\n"
    "    if (box.files && !box.files[0]) throw new Error('Choose an image first.');\n"
    "    const text = box.files ? await read(box.files[0]) : box.value;\n"
    "    const [path, body, of] = kinds[model.attend.kind][1](text, model.attend);\n"
    "    show(out, of(await ask(path, {...body, model: model.id})));\n"
    "  } catch (e) { show(out, e.message, true); }\n"
    "  button.disabled = false;\n"
    "}\n"
    "function add(to, model) {\n"
    "  const kind = kinds[model.attend.kind];\n"
    "  make('h2', to, model.id);\n"
    "  make('p', to, model.attend.kind + ', ' + model.attend.type + ', ' + model.attend.dtype);\n"
    "  if (!kind) return;\n"
    "  const box = make(kind[0] ? 'textarea' : 'input', to);\n"
    "  box.ariaLabel = kind[0] || 'An image';\n"
    "  if (kind[0]) box.placeholder = kind[0]; else { box.type = 'file'; box.accept = 'image/*'; }\n"
    "  const button = make('button', to, 'Ask'), out = make('pre', to);\n"
    "  out.ariaLive = 'polite';\n"
    "  button.onclick = () => run(model, box, button, out);\n"
    "}\n"
    "async function list() {\n"
    "  const to = document.getElementById('models');\n"
    "  try {\n"
    "    const all = await ask('/v1/models');\n"
    "    show(to, '');\n"
    "    for (const m of all.data) add(to, m);\n"
    "  } catch (e) { show(to, e.message, true); }\n"
    "}\n"
    "document.getElementById('key').onchange = list;\n"
    "list();\n"
    "</script></html>\n";
/* clang-format on */

static void answer(serve_call *c, void *fields)
{
    (void)fields;
    const int bytes = asprintf(&c->answer->body, "%s%s", page, script);
    if (bytes < 0) {
        c->answer->body = NULL;
        serve_refuse(c, 503, NULL, "out of memory");
        return;
    }
    c->answer->bytes = (size_t)bytes;
    c->answer->status = 200;
    c->answer->type = "text/html; charset=utf-8";
    http_answer_header(c->answer, "Content-Security-Policy",
                       "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; "
                       "script-src 'unsafe-inline'; "
                       "form-action 'none'; frame-ancestors 'none'");
}

const serve_route serve_route_page = {.method = "GET",
                                      .path = "/",
                                      .summary = "A page to try the models",
                                      .type = "text/html",
                                      .run = answer,
                                      .open = true};
