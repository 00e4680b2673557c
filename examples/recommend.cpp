// Which items come next, and which of the past ones weigh, from C++.
//
//     c++ -std=c++20 recommend.cpp $(pkg-config --cflags --libs attend_model) -o recommend
//     ./recommend FOLDER tent camera mat          # a folder that recommend.c has written
#include <attend_recommend.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

class Recommender
{
  public:
    explicit Recommender(const char *folder)
    {
        att_ctx *ctx = nullptr;
        check(att_open(&ctx, nullptr));
        ctx_.reset(ctx);
        att_recommender *m = nullptr;
        check(att_recommender_open(ctx, folder, NULL, &m));
        m_.reset(m);
    }

    int32_t find(const char *id) const
    {
        const int64_t item = att_recommender_find_item(m_.get(), id);
        if (item < 0)
            throw std::runtime_error(std::string(id) + " is not an item of the model");
        return static_cast<int32_t>(item);
    }

    std::vector<std::pair<std::string, float>> next(const std::vector<int32_t> &history, int64_t k) const
    {
        const int64_t offsets[] = {0, static_cast<int64_t>(history.size())};
        att_recommend_options options = {};
        options.size = sizeof options;
        options.k = k;
        options.exclude_seen = true;
        att_recommendation r;
        check(att_recommend(m_.get(), 1, history.data(), offsets, &options, &r));
        std::vector<std::pair<std::string, float>> list;
        for (int64_t i = 0; i < r.k && r.items[i] >= 0; i++)
            list.emplace_back(att_recommender_item(m_.get(), r.items[i]), r.scores[i]);
        att_recommendation_free(ctx_.get(), &r);
        return list;
    }

    std::vector<float> attention(const std::vector<int32_t> &history) const
    {
        std::vector<float> weights(history.size());
        check(att_recommender_attention(m_.get(), static_cast<int64_t>(history.size()), history.data(), -1, -1,
                                        weights.data()));
        return weights;
    }

  private:
    struct Free {
        void operator()(att_ctx *ctx) const { att_close(ctx); }
        void operator()(att_recommender *m) const { att_recommender_free(m); }
    };
    std::unique_ptr<att_ctx, Free> ctx_;
    std::unique_ptr<att_recommender, Free> m_;
};

int main(int n, char **argument)
{
    if (n < 3)
        return std::fprintf(stderr, "usage: recommend FOLDER ITEM...\n"), 2;
    try {
        const Recommender m(argument[1]);
        std::vector<int32_t> history;
        for (int i = 2; i < n; i++)
            history.push_back(m.find(argument[i]));
        for (const auto &[item, score] : m.next(history, 3))
            std::printf("%8.4f  %s\n", static_cast<double>(score), item.c_str());
        const std::vector<float> weights = m.attention(history);
        for (std::size_t i = 0; i < weights.size(); i++)
            std::printf("%7.0f%%  %s\n", 100 * static_cast<double>(weights[i]), argument[i + 2]);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
