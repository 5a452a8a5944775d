//! The contenders written in Rust. One request a line on the standard input, one answer a line on the standard output:
//!
//!   time CONTENDER COUNT PATH   sketches the first COUNT lines of the file: "ok WALL-SECONDS CPU-SECONDS"
//!   agree CONTENDER PATH        sketches the lines two by two: "ok MEAN-SHARE-OF-EQUAL-POSITIONS"
//!
//! Anything that goes wrong is answered with "error WHY". The fields are separated by tabs.
use gaoya::minhash::{MinHasher, MinHasher32};
use gaoya::text::{shingle_tokens, whitespace_split};
use lshdedup_core::{Config, Index, ShingleUnit};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;
use txtfp::{Canonicalizer, Fingerprinter, MinHashFingerprinter, ShingleTokenizer, WordTokenizer};

const WORDS: usize = 4;
const POSITIONS: usize = 128;

type Signature = Box<dyn Fn(&str) -> Vec<u64>>;

/// A contender comes twice: as the loop that is timed, without any conversion, and as a function for comparing two texts.
struct Contender {
    pass: Box<dyn Fn(&[String])>,
    signature: Signature,
}

fn contender(name: &str) -> Option<Contender> {
    match name {
        "lshdedup-core" => Some(lshdedup()),
        "gaoya" => Some(gaoya_words()),
        "txtfp" => Some(fingerprinter()),
        _ => None,
    }
}

fn lshdedup() -> Contender {
    let make = || {
        let words = Config { num_hashes: POSITIONS, bands: 16, shingle_size: WORDS, shingle_unit: ShingleUnit::Word, seed: 1 };
        Index::new(words).expect("a valid configuration")
    };
    let (timed, compared) = (make(), make());
    Contender {
        pass: Box::new(move |documents| documents.iter().for_each(|d| drop(black_box(timed.signature(d))))),
        signature: Box::new(move |text| compared.signature(text).into_iter().map(u64::from).collect()),
    }
}

fn gaoya_words() -> Contender {
    fn signature(hasher: &MinHasher32<fnv::FnvBuildHasher>, text: &str) -> Vec<u32> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&lower).collect();
        hasher.create_signature(shingle_tokens(&words, WORDS))
    }
    let (timed, compared) = (MinHasher32::new(POSITIONS), MinHasher32::new(POSITIONS));
    Contender {
        pass: Box::new(move |documents| documents.iter().for_each(|d| drop(black_box(signature(&timed, d))))),
        signature: Box::new(move |text| signature(&compared, text).into_iter().map(u64::from).collect()),
    }
}

fn fingerprinter() -> Contender {
    let make = || {
        let shingles = ShingleTokenizer { k: WORDS, inner: WordTokenizer };
        MinHashFingerprinter::<_, POSITIONS>::new(Canonicalizer::default(), shingles)
    };
    let (timed, compared) = (make(), make());
    Contender {
        // A document without a word is an error here; it is time spent all the same.
        pass: Box::new(move |documents| documents.iter().for_each(|d| drop(black_box(timed.fingerprint(d))))),
        signature: Box::new(move |text| compared.fingerprint(text).map(|s| s.hashes.to_vec()).unwrap_or_default()),
    }
}

fn cpu_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn agreement(signature: &Signature, documents: &[String]) -> f64 {
    let shares: Vec<f64> = documents
        .chunks_exact(2)
        .map(|pair| {
            let (a, b) = (signature(&pair[0]), signature(&pair[1]));
            a.iter().zip(&b).filter(|(x, y)| x == y).count() as f64 / POSITIONS as f64
        })
        .collect();
    shares.iter().sum::<f64>() / shares.len() as f64
}

fn answer(line: &str, corpora: &mut HashMap<String, Vec<String>>) -> Result<String, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (verb, name, path) = match fields[..] {
        ["time", name, _, path] => ("time", name, path),
        ["agree", name, path] => ("agree", name, path),
        _ => return Err("unknown request".into()),
    };
    let contender = contender(name).ok_or("unknown contender")?;
    if !corpora.contains_key(path) {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        corpora.insert(path.into(), text.lines().map(String::from).collect());
    }
    let documents = &corpora[path];
    if verb == "agree" {
        return Ok(agreement(&contender.signature, documents).to_string());
    }
    let count: usize = fields[2].parse().map_err(|_| "count is no number")?;
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    (contender.pass)(&documents[..count.min(documents.len())]);
    Ok(format!("{}\t{}", wall.elapsed().as_secs_f64(), cpu_seconds() - cpu))
}

fn main() {
    let mut corpora = HashMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match answer(&line, &mut corpora) {
            Ok(values) => println!("ok\t{values}"),
            Err(why) => println!("error\t{why}"),
        }
    }
}
