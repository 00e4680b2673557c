/* PyTorch's random numbers on a CPU, bit for bit: those of torch.manual_seed and then torch.nn. */
#ifndef EXPLAIN_TORCH_H
#define EXPLAIN_TORCH_H

#include <stdint.h>

/* The Mersenne Twister MT19937 (Matsumoto, Nishimura 1998). */
enum { TORCH_STATE = 624 };
typedef struct torch_random {
    uint32_t state[TORCH_STATE];
    int used; /* used words of the state; if all are used, the next draw makes a new one */
} torch_random;

void torch_manual_seed(torch_random *g, uint32_t seed);
uint32_t torch_draw(torch_random *g); /* 32 bits */
/* Returns a number in [from, to), made from the low 24 bits of a draw, as in Tensor.uniform_. */
float torch_uniform(torch_random *g, float from, float to);
/* Returns the largest weight of nn.Linear with that many inputs: Kaiming's uniform bound with a = √5 is 1 / √inputs. */
float torch_linear_bound(int64_t inputs);
/* Returns the largest weight of nn.MultiheadAttention's in_proj [outputs, inputs]: Xavier's uniform bound. */
float torch_xavier_bound(int64_t inputs, int64_t outputs);
/* Returns true with probability p, from the low 53 bits of two draws, as in Tensor.bernoulli_ without MKL. */
int torch_bernoulli(torch_random *g, double p);

#endif
