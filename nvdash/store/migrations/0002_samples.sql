-- Scores of single samples of a quality run: a hash and a number, for differences pair by pair.
CREATE TABLE samples (run_id VARCHAR, task VARCHAR, metric VARCHAR, filter VARCHAR, sample VARCHAR, score DOUBLE);
