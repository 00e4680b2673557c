"""Attention: weights of a head with their tokens, drawn as a map."""
import html

_CELL, _LABEL, _FONT = 18, 110, 11  # px


class Attention:
    """weights [queries, keys], an attend.Array whose rows sum to 1, the tokens of the keys, and those of the queries, which
    are the same in self-attention"""

    def __init__(self, weights, tokens, queries=None):
        self.weights, self.tokens, self.queries = weights, tokens, tokens if queries is None else queries

    def __repr__(self):
        return f"attend.Attention({len(self.tokens)} tokens)"

    def to_svg(self):
        """A map: rows are queries, columns keys, and dark cells large weights"""
        import html  # not needed by others
        width, height = (_LABEL + len(tokens) * _CELL for tokens in (self.tokens, self.queries))
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="{_FONT}" '
               'font-family="sans-serif">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
        for j, token in enumerate(self.tokens):
            out.append(f'<text transform="translate({_LABEL + j * _CELL + 13} {_LABEL - 4}) rotate(-90)">{html.escape(token)}</text>')
        for i, (token, row) in enumerate(zip(self.queries, self.weights.tolist())):
            at, text = _LABEL + i * _CELL, html.escape(token)
            out.append(f'<text x="{_LABEL - 4}" y="{at + 13}" text-anchor="end">{text}</text>')
            for j, weight in enumerate(row):
                out.append(f'<rect x="{_LABEL + j * _CELL}" y="{at}" width="{_CELL - 1}" height="{_CELL - 1}" '
                           f'fill="#1b6ca8" fill-opacity="{weight:.3f}"><title>{text} to '
                           f'{html.escape(self.tokens[j])}: {weight:.4f}</title></rect>')
        return "\n".join([*out, "</svg>"])

    def _repr_html_(self):
        return self.to_svg()
