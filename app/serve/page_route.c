/* The page at "/": the models, and a box to try each. It asks the routes as any other client does. */
#include "routes.h"

#include <stdlib.h>
#include <string.h>

static const char page[] =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>attend serve</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>body{font:16px sans-serif;max-width:44em;margin:2em auto;padding:0 1em}textarea,input{font:inherit}\n"
    "textarea{width:100%;box-sizing:border-box}pre{white-space:pre-wrap;overflow-wrap:anywhere;max-height:20em;"
    "overflow:auto}</style>\n"
    "<h1>attend serve</h1><p>Key, if the server needs one: <input id=\"key\" type=\"password\"></p>\n"
    "<div id=\"models\">The models are read.</div>\n"
    "<p><a href=\"/openapi.json\">The routes and their fields</a></p>\n"
    "<script>\n"
    "const kinds = {\n"
    "  'sentence model': {path: '/v1/embeddings', body: t => ({input: t})},\n"
    "  'text classifier': {path: '/classify', body: t => ({input: t})},\n"
    "  'translator': {path: '/translate', body: t => ({q: t, source: 'auto', target: '?'})},\n"
    "  'language model': {path: '/v1/completions', body: t => ({prompt: t, max_tokens: 64})},\n"
    "  'vision model': {path: '/classify', image: true, body: t => ({image: t, top_k: 5})},\n"
    "  'captioner': {path: '/caption', image: true, body: t => ({image: t})},\n"
    "  'recommender': {path: '/recommend', body: t => ({history: t.split(/\\s+/).filter(x => x)})},\n"
    "};\n"
    "const make = (name, to, text) => { const e = document.createElement(name); if (text) e.textContent = text;\n"
    "  to.append(e); return e; };\n"
    "const headers = () => { const key = document.getElementById('key').value;\n"
    "  return Object.assign({'Content-Type': 'application/json'}, key ? {Authorization: 'Bearer ' + key} : {}); };\n"
    "const read = file => new Promise(done => { const r = new FileReader(); r.onload = () => done(r.result);\n"
    "  r.readAsDataURL(file); });\n"
    "async function ask(kind, model, box, out) {\n"
    "  const body = kind.body(kind.image ? await read(box.files[0]) : box.value);\n"
    "  body.model = model;\n"
    "  const a = await fetch(kind.path, {method: 'POST', headers: headers(), body: JSON.stringify(body)});\n"
    "  out.textContent = kind.path + ' ' + a.status + '\\n' + await a.text();\n"
    "}\n"
    "async function list() {\n"
    "  const to = document.getElementById('models'), a = await fetch('/v1/models', {headers: headers()});\n"
    "  const all = await a.json();\n"
    "  to.textContent = all.error ? all.error.message : '';\n"
    "  for (const m of all.data || []) {\n"
    "    const kind = kinds[m.attend.kind];\n"
    "    make('h2', to, m.id);\n"
    "    make('p', to, m.attend.kind + ', ' + m.attend.type + ', ' + m.attend.dtype);\n"
    "    if (!kind) continue;\n"
    "    const box = make(kind.image ? 'input' : 'textarea', to), out = document.createElement('pre');\n"
    "    if (kind.image) box.type = 'file';\n"
    "    make('button', to, 'Ask').onclick = () => ask(kind, m.id, box, out);\n"
    "    to.append(out);\n"
    "  }\n"
    "}\n"
    "document.getElementById('key').onchange = list;\nlist();\n"
    "</script></html>\n";

static void answer(serve_call *c, void *fields)
{
    (void)fields;
    c->answer->body = strdup(page);
    if (!c->answer->body) {
        serve_refuse(c, 503, NULL, "out of memory");
        return;
    }
    c->answer->bytes = sizeof page - 1;
    c->answer->status = 200;
    c->answer->type = "text/html; charset=utf-8";
    http_answer_header(c->answer, "Content-Security-Policy",
                       "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                       "form-action 'none'; frame-ancestors 'none'");
}

const serve_route serve_route_page = {
    .method = "GET", .path = "/", .summary = "A page to try the models", .run = answer, .open = true};
