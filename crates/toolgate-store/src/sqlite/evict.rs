//! Expiry and eviction.

use rusqlite::{Connection, OptionalExtension as _};

use crate::now_millis;

/// Eviction makes room for this fraction of the limit, so that not every commit evicts.
const SLACK_FRACTION: u64 = 64;
/// Number of owners that are looked at together.
const OWNERS_PER_STEP: usize = 256;

/// Removes expired entries.
pub(super) fn remove_expired(connection: &Connection) -> rusqlite::Result<()> {
    // The inner query scans the index on age, which is small beside the table.
    let delete = "DELETE FROM entry WHERE seq IN (SELECT seq FROM entry INDEXED BY entry_age WHERE expires <= ?)";
    connection.prepare_cached(delete)?.execute([now_millis()])?;
    connection.prepare_cached("DELETE FROM usage WHERE bytes <= 0")?.execute([]).map(drop)
}

/// Evicts entries where the file holds too much. The owners that use most lose their oldest entries.
pub(super) fn shrink(connection: &Connection, max_bytes: u64) -> rusqlite::Result<()> {
    if used_bytes(connection)? <= max_bytes {
        return Ok(());
    }
    let target = max_bytes - max_bytes / SLACK_FRACTION;
    loop {
        let excess = used_bytes(connection)?.saturating_sub(target);
        if excess == 0 || evict(connection, excess, max_bytes)? == 0 {
            return Ok(());
        }
    }
}

/// Evicts about `excess` bytes from the largest owners. Returns how many entries.
fn evict(connection: &Connection, excess: u64, max_bytes: u64) -> rusqlite::Result<usize> {
    let owners: Vec<(Vec<u8>, i64)> = connection
        .prepare_cached("SELECT owner, bytes FROM usage ORDER BY bytes DESC LIMIT ?")?
        .query_map([OWNERS_PER_STEP as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let Some((_, smallest)) = owners.last() else { return Ok(0) };
    let newest = newest(connection)?;
    let share = (excess / owners.len() as u64).cast_signed();
    let mut left = excess.cast_signed();
    let mut evicted = 0;
    for (owner, bytes) in &owners {
        if left <= 0 {
            break;
        }
        // Down to the usage of the others; equal owners each give their share.
        let wanted = (bytes - smallest).max(share).min(left).max(1);
        let (count, freed) = evict_oldest(connection, owner, wanted, newest)?;
        evicted += count;
        left -= freed;
    }
    if evicted == 0 {
        return evict_outgrown(connection, max_bytes);
    }
    Ok(evicted)
}

/// Evicts the oldest entries of an owner until so many bytes are freed, except for one entry. Returns
/// the number of entries and bytes.
fn evict_oldest(
    connection: &Connection,
    owner: &[u8],
    wanted: i64,
    except: Option<i64>,
) -> rusqlite::Result<(usize, i64)> {
    let mut oldest = connection.prepare_cached(
        "SELECT seq, bytes FROM entry WHERE owner = ? ORDER BY expires, seq LIMIT 256",
    )?;
    let oldest: Vec<(i64, i64)> = oldest
        .query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut delete = connection.prepare_cached("DELETE FROM entry WHERE seq = ?")?;
    let (mut count, mut freed) = (0, 0);
    for (seq, bytes) in oldest.into_iter().filter(|(seq, _)| Some(*seq) != except) {
        if freed >= wanted {
            break;
        }
        count += delete.execute([seq])?;
        freed += bytes;
    }
    Ok((count, freed))
}

/// The entry that was written last.
fn newest(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let last = "SELECT seq, expires FROM entry ORDER BY seq DESC LIMIT 1";
    // A list is written to after it was created: its last item tells when.
    let appended = "SELECT entry, (SELECT expires FROM entry WHERE seq = item.entry)
        FROM item ORDER BY seq DESC LIMIT 1";
    let find = |sql: &str| -> rusqlite::Result<Option<(i64, i64)>> {
        let mut find = connection.prepare_cached(sql)?;
        find.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    };
    let candidates = [find(last)?, find(appended)?];
    let newest = candidates.into_iter().flatten().max_by_key(|(_, expires)| *expires);
    Ok(newest.map(|(seq, _)| seq))
}

/// Evicts the only entry that is left where it is a list that has outgrown the store.
fn evict_outgrown(connection: &Connection, max_bytes: u64) -> rusqlite::Result<usize> {
    let half = (max_bytes / 2).cast_signed();
    let delete = "DELETE FROM entry WHERE bytes > ? AND seq IN (SELECT entry FROM item)";
    connection.prepare_cached(delete)?.execute([half])
}

/// Bytes of the file that hold something.
fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| -> rusqlite::Result<u64> {
        let number = connection.prepare_cached(pragma)?.query_row([], |row| row.get::<_, i64>(0));
        number.map(i64::unsigned_abs)
    };
    let pages = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
    Ok(pages * number("PRAGMA page_size")?)
}
