// Runs the script of the page at "/" without a browser: node page.js URL KEY ORDERS. ORDERS is JSON, {model: what is typed
// into its box, or {file: path}}. Prints as JSON what the page then shows, and which requests it made.
const fs = require('fs');

class Element {
  constructor(name) { Object.assign(this, {name, children: [], textContent: '', value: '', className: ''}); }
  append(e) { this.children.push(e); }
  set text(t) { this.children = []; this.textContent = t; }
  all() { return [this, ...this.children.flatMap(e => e.all())]; }
}
class FileReader {
  readAsDataURL(path) {
    this.result = 'data:image/png;base64,' + fs.readFileSync(path).toString('base64');
    setImmediate(() => this.onload());
  }
}

async function main(url, key, orders) {
  const html = await (await fetch(url + '/')).text(), byId = {models: new Element('div'), key: new Element('input')};
  const requests = [], document = {createElement: n => new Element(n), getElementById: id => byId[id]};
  const ask = async (path, options) => {
    requests.push(path);
    return fetch(new URL(path, url), options);
  };
  byId.key.value = key;
  new Function('document', 'fetch', 'FileReader', html.match(/<script>([^]*)<\/script>/)[1])(document, ask, FileReader);
  while (byId.models.textContent === '' ? !byId.models.children.length : byId.models.textContent.startsWith('The'))
    await new Promise(done => setTimeout(done, 10));
  const shown = {page: byId.models.textContent, external: [...html.matchAll(/(?:src|href)="(https?:[^"]*)"/g)].length};
  const parts = byId.models.all();
  for (const [model, typed] of Object.entries(orders)) {
    const at = parts.findIndex(e => e.name === 'h2' && e.textContent === model);
    const box = parts[at + 2], button = parts[at + 3], out = parts[at + 4];
    if (typed.file !== undefined) box.files = typed.file ? [typed.file] : [];
    else box.value = typed;
    await button.onclick();
    shown[model] = [out.className, out.textContent];
  }
  console.log(JSON.stringify({shown, requests}));
}

main(process.argv[2], process.argv[3], JSON.parse(process.argv[4]));
