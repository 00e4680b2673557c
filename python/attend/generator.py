"""Generator: language models that continue texts and answer, one or several at once."""
import json

from attend import _attend
from attend._model import Model


class Generated(str):
    """A generated text, with its ids and why it ended: "eos", "stop", "length", "context" or "cancelled" """

    def __new__(cls, text, ids, end):
        self = super().__new__(cls, text)
        self.ids, self.end = ids, end
        return self

    def __getnewargs__(self):
        return str(self), self.ids, self.end


class Generator(Model):
    """A language model: a folder, a .gguf file, the name of one of attend's models, or OWNER/NAME of the Hub"""

    _type = _attend.Generator

    def generate(self, prompts, max_new_tokens=256, **options):
        """Continues a str, or each str of a sequence, which are computed side by side: a Generated, or a list of them.
        options: temperature (0: the most probable token), top_k, top_p, repetition_penalty, seed, stop (texts), lookup;
        what is not given is as in the model's generation_config.json. max_new_tokens=0: as many as it has positions for."""
        single = isinstance(prompts, str)
        prompts = [prompts] if single else list(prompts)
        session, ended = self._session(prompts), 0
        numbers = [session.add(self._ids(prompt), max_new_tokens=max_new_tokens, **options) for prompt in prompts]
        while ended < len(numbers):
            ended += sum(last for _, _, last in session.step())
        found = [Generated(*session.finish(number)) for number in numbers]
        return found[0] if single else found

    def stream(self, prompt, max_new_tokens=256, **options):
        """Yields pieces of the text as they are generated. prompt: a str or ids"""
        session = self._session([prompt])
        session.add(self._ids(prompt), max_new_tokens=max_new_tokens, **options)
        while True:
            for _, text, last in session.step():
                if text:
                    yield text
                if last:
                    return

    def chat(self, messages, max_new_tokens=256, *, tools=None, documents=None, template_variables=None, stream=False, stop=(),
             **options):
        """The answer to messages, [{"role": "user", "content": "..."}], or to one str: a Generated, or with
        stream=True its pieces. tools, documents and template_variables (such as {"enable_thinking": False}) are those of
        apply_chat_template; messages may have "tool_calls" and other fields"""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        ids = self._model.chat_ids([_message(m) for m in messages], _json(tools), _json(documents), _json(template_variables))
        stop = [stop] if isinstance(stop, str) else list(stop)
        if self._model.chat_end:
            stop.append(self._model.chat_end)
        if stream:
            return self.stream(ids, max_new_tokens, stop=stop, **options)
        [answer] = self.generate([ids], max_new_tokens, stop=stop, **options)
        return answer

    def _session(self, prompts):
        return _attend.Session(self._model, max(1, len(prompts)))

    def _ids(self, prompt):
        return self._model.tokenize(prompt) if isinstance(prompt, str) else prompt


def _json(value):
    return None if value is None else json.dumps(value)


def _message(message):
    """(role, content, the other fields as JSON); a content that is not a str, such as None, is one of these"""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise _attend.ArgumentError(f"messages: each is a dict with a role and a content, not {message!r}")
    role, content = message["role"], message.get("content", "")
    more = {k: v for k, v in message.items() if k not in ("role", "content")}
    if not isinstance(content, str):
        content, more["content"] = "", content
    return role, content, _json(more or None)
