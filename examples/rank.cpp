// How good is a recommender? A log is split, and a scorer of one's own is compared with what is popular, from C++.
//
//     c++ -std=c++20 rank.cpp $(pkg-config --cflags --libs attend_model) -o rank
//     ./rank LOG
#include <algorithm>
#include <attend_recommend.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

// Markov: how often each item followed the last one.
class Followers
{
  public:
    explicit Followers(const att_holdout *h)
    {
        att_interactions_info info = {};
        info.size = sizeof info;
        check(att_interactions_describe(att_holdout_log(h), &info));
        followers_.resize(static_cast<size_t>(info.items));
        for (int64_t user = 0; user < info.users; user++) {
            const att_history x = att_holdout_train(h, user);
            for (int64_t i = 1; i < x.count; i++)
                followers_[static_cast<size_t>(x.items[i - 1])].push_back(x.items[i]);
        }
    }

    att_scorer scorer() { return {score, this}; }

  private:
    static att_status score(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                            float *scores)
    {
        const Followers &self = *static_cast<Followers *>(user);
        for (int64_t h = 0; h < n; h++, scores += n_items) {
            std::fill(scores, scores + n_items, 0.0f);
            if (offsets[h + 1] > offsets[h])
                for (const int32_t item : self.followers_[static_cast<size_t>(items[offsets[h + 1] - 1])])
                    scores[item] += 1;
        }
        return ATT_OK;
    }

    std::vector<std::vector<int32_t>> followers_;
};

static void print(const char *name, const att_holdout *h, const att_scorer &scorer)
{
    att_ranking_options options = {};
    options.size = sizeof options;
    options.part = ATT_HOLDOUT_PART_TEST;
    att_ranking r = {};
    r.size = sizeof r;
    check(att_rank(h, &scorer, &options, &r));
    std::printf("%-12s HR@%lld %.4f [%.4f, %.4f]  NDCG@%lld %.4f  coverage %.3f\n", name, static_cast<long long>(r.k),
                r.hr.mean, r.hr.low, r.hr.high, static_cast<long long>(r.k), r.ndcg.mean, r.coverage);
}

int main(int argc, char **argv)
try {
    if (argc != 2) {
        std::fprintf(stderr, "usage: rank LOG\n");
        return 2;
    }
    att_ctx *ctx = nullptr;
    check(att_open(&ctx, nullptr));
    const std::unique_ptr<att_ctx, void (*)(att_ctx *)> close(ctx, att_close);
    att_interactions *log = nullptr;
    check(att_interactions_open(ctx, argv[1], nullptr, &log));
    const std::unique_ptr<att_interactions, void (*)(att_interactions *)> free_log(log, att_interactions_free);
    att_holdout *h = nullptr;
    check(att_holdout_new(log, nullptr, &h));
    const std::unique_ptr<att_holdout, void (*)(att_holdout *)> free_holdout(h, att_holdout_free);
    att_baseline *popular = nullptr;
    check(att_baseline_new(h, ATT_BASELINE_POPULARITY, nullptr, &popular));
    const std::unique_ptr<att_baseline, void (*)(att_baseline *)> free_baseline(popular, att_baseline_free);
    print("popularity", h, att_baseline_scorer(popular));
    print("followers", h, Followers(h).scorer());
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
