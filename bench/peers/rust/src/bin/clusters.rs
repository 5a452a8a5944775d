//! Near-duplicates among the documents of a file, by gaoya: its sketches, its index of bands, its comparison of whole sketches.
//!
//!   clusters INPUT FOLDER WORDS THRESHOLD
//!
//! Input and output are those of clusters.py, and so are the 128 positions in 32 bands of 4. It uses all cores.
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32};
use gaoya::text::{shingle_tokens, whitespace_split};
use rayon::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

const BANDS: usize = 32;
const ROWS: usize = 4;

fn text_of(line: &str) -> Result<String, String> {
    let document: serde_json::Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    Ok(document["text"].as_str().ok_or("a document without text")?.to_owned())
}

fn find(parent: &mut [u32], mut x: u32) -> u32 {
    while parent[x as usize] != x {
        parent[x as usize] = parent[parent[x as usize] as usize];
        x = parent[x as usize];
    }
    x
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, folder, words, threshold] = arguments.as_slice() else { return Err("INPUT FOLDER WORDS THRESHOLD".into()) };
    let (words, threshold): (usize, f64) = (words.parse()?, threshold.parse()?);

    let hasher = MinHasher32::new(BANDS * ROWS);
    let mut signatures: Vec<Vec<u32>> = Vec::new();
    let mut lines = BufReader::new(File::open(input)?).lines();
    loop {
        let batch = lines.by_ref().take(4096).collect::<Result<Vec<String>, _>>()?;
        if batch.is_empty() {
            break;
        }
        let sketched = batch.par_iter().map(|line| {
            let text = text_of(line)?;
            let tokens: Vec<&str> = whitespace_split(&text).collect();
            Ok(hasher.create_signature(shingle_tokens(&tokens, words)))
        });
        signatures.extend(sketched.collect::<Result<Vec<_>, String>>()?);
    }

    let ids: Vec<u32> = (0..signatures.len() as u32).collect();
    let mut index = MinHashIndex::new(BANDS, ROWS, threshold);
    index.par_bulk_insert(ids.clone(), signatures.clone());
    let mut parent = ids;
    let mut pairs = BufWriter::new(File::create(Path::new(folder).join("pairs.csv"))?);
    for (a, found) in index.par_bulk_query(&signatures).into_iter().enumerate() {
        for b in found.into_iter().filter(|&b| b < a as u32) {
            writeln!(pairs, "{a},{b}")?;
            let (x, y) = (find(&mut parent, a as u32), find(&mut parent, b));
            parent[x.max(y) as usize] = x.min(y);
        }
    }
    let mut clusters = BufWriter::new(File::create(Path::new(folder).join("clusters.csv"))?);
    for i in 0..parent.len() as u32 {
        writeln!(clusters, "{i},{}", find(&mut parent, i))?;
    }
    pairs.flush()?;
    Ok(clusters.flush()?)
}
