//! Tables as files, written on a thread of their own while sessions are played.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::{InOrder, Name, Part, Schema, Sink, csv, parquet};
use crate::Error;

/// Parts that may wait to be written: some tens of megabytes.
const WAITING: usize = 4;

enum Message {
    Rows(u64, Part),
    End(u64),
}

/// Tables that are being written to a folder. Each file has a hidden name until it is whole: one that isn't
/// [finished](Files::finish) leaves none behind.
#[derive(Debug)]
pub struct Files {
    sender: Option<SyncSender<Message>>,
    streams: AtomicU64,
    thread: Option<JoinHandle<Result<(), Error>>>,
    outs: Vec<Named>,
}

/// A file under its hidden name.
#[derive(Debug, Clone)]
struct Named {
    hidden: PathBuf,
    path: PathBuf,
}

/// One table's files.
struct Out {
    table: Name,
    parquet: (parquet::Writer, PathBuf),
    csv: Option<(csv::Writer, PathBuf)>,
}

impl Files {
    /// Opens the files of these tables in a folder, with `csv` beside the Parquet ones; `metadata` enters each Parquet file.
    ///
    /// # Errors
    /// Where a file can't be made.
    pub fn create(folder: &Path, schemas: &[Schema], csv: bool, metadata: &[(String, String)]) -> Result<Self, Error> {
        let mut files = Self { sender: None, streams: AtomicU64::new(0), thread: None, outs: Vec::new() };
        let mut outs = Vec::new();
        for schema in schemas {
            let named = files.open(folder, schema.table, "parquet")?;
            let writer = parquet::Writer::new(named.1, schema.clone(), metadata).map_err(|e| failed(&named.0, e))?;
            let csv = if csv {
                let named = files.open(folder, schema.table, "csv")?;
                let writer = csv::Writer::new(named.1, schema.clone()).map_err(|e| failed(&named.0, e))?;
                Some((writer, named.0))
            } else {
                None
            };
            outs.push(Out { table: schema.table, parquet: (writer, named.0), csv });
        }
        let (sender, receiver) = sync_channel(WAITING);
        let writer = std::thread::Builder::new().name("tables".to_owned());
        let thread = writer.spawn(move || write(outs, &receiver));
        files.thread = Some(thread.map_err(|error| Error::Threads(error.to_string()))?);
        files.sender = Some(sender);
        Ok(files)
    }

    /// The files under their hidden names, for whoever has to take them away because the program is stopped.
    pub fn hidden(&self) -> Vec<PathBuf> {
        self.outs.iter().map(|out| out.hidden.clone()).collect()
    }

    fn open(&mut self, folder: &Path, table: Name, ending: &str) -> Result<(PathBuf, File), Error> {
        let name = format!("{}.{ending}", table.stem());
        let named = Named { hidden: hidden(folder, &name), path: folder.join(name) };
        let file = File::create(&named.hidden).map_err(|e| failed(&named.path, e))?;
        let path = named.path.clone();
        self.outs.push(named);
        Ok((path, file))
    }

    /// Waits until all is written and gives the files their names, which are returned.
    ///
    /// # Errors
    /// Where something couldn't be written; then there is no file.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_else(|_| {
                let path = self.outs.first().map(|out| out.path.clone()).unwrap_or_default();
                Err(failed(&path, "the thread that writes it has stopped"))
            })?;
        }
        for Named { hidden, path } in &self.outs {
            std::fs::rename(hidden, path).map_err(|e| failed(path, e))?;
        }
        Ok(std::mem::take(&mut self.outs).into_iter().map(|named| named.path).collect())
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &self.sender {
            // where nobody takes it, writing has failed, and `finish` says so
            let _ = sender.send(message);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for Named { hidden, .. } in &self.outs {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

impl Sink for Files {
    fn streams(&self, count: u64) -> u64 {
        self.streams.fetch_add(count, Ordering::Relaxed)
    }

    fn rows(&self, stream: u64, part: Part) {
        self.send(Message::Rows(stream, part));
    }

    fn end(&self, stream: u64) {
        self.send(Message::End(stream));
    }
}

/// Where a file is written until it is whole: a hidden name of this process, since two runs into one folder mustn't write one
/// file.
pub fn hidden(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.{}.tmp", std::process::id()))
}

fn failed(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Write { path: path.to_owned(), source: std::io::Error::other(error) }
}

fn write(mut outs: Vec<Out>, receiver: &Receiver<Message>) -> Result<(), Error> {
    let mut order = InOrder::default();
    let mut next = |part: Part| -> Result<(), Error> {
        let Some(out) = outs.iter_mut().find(|out| out.table == part.table) else { return Ok(()) };
        out.parquet.0.write(&part).map_err(|e| failed(&out.parquet.1, e))?;
        if let Some((csv, path)) = &mut out.csv {
            csv.write(&part).map_err(|e| failed(path, e))?;
        }
        Ok(())
    };
    for message in receiver {
        match message {
            Message::Rows(stream, part) => order.rows(stream, part, &mut next)?,
            Message::End(stream) => order.end(stream, &mut next)?,
        }
    }
    for out in outs {
        out.parquet.0.close().map_err(|e| failed(&out.parquet.1, e))?;
        if let Some((csv, path)) = out.csv {
            csv.close().map_err(|e| failed(&path, e))?;
        }
    }
    Ok(())
}
