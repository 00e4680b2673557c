"""Attention: weights of a head with their tokens, drawn as a map."""
import html

_CELL, _LABEL, _FONT = 18, 110, 11  # px


class Attention:
    """weights [queries, keys], an attend.Array whose rows sum to 1, and tokens"""

    def __init__(self, weights, tokens):
        self.weights, self.tokens = weights, tokens

    def __repr__(self):
        return f"attend.Attention({len(self.tokens)} tokens)"

    def to_svg(self):
        """A map: rows are queries, columns keys, and dark cells large weights"""
        import html  # not needed by others
        rows, n = self.weights.tolist(), len(self.tokens)
        side = _LABEL + n * _CELL
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" font-size="{_FONT}" '
               'font-family="sans-serif">', f'<rect width="{side}" height="{side}" fill="#ffffff"/>']
        for i, (token, row) in enumerate(zip(self.tokens, rows)):
            at, text = _LABEL + i * _CELL, html.escape(token)
            out.append(f'<text x="{_LABEL - 4}" y="{at + 13}" text-anchor="end">{text}</text>')
            out.append(f'<text transform="translate({at + 13} {_LABEL - 4}) rotate(-90)">{text}</text>')
            for j, weight in enumerate(row):
                out.append(f'<rect x="{_LABEL + j * _CELL}" y="{at}" width="{_CELL - 1}" height="{_CELL - 1}" '
                           f'fill="#1b6ca8" fill-opacity="{weight:.3f}"><title>{text} to '
                           f'{html.escape(self.tokens[j])}: {weight:.4f}</title></rect>')
        return "\n".join([*out, "</svg>"])

    def _repr_html_(self):
        return self.to_svg()
