// Finds the boundaries of a result window (see `ResultWindow`) by running the query, and moves them after
// changes.
//
// Example: a query with limit 2 has its boundary at c. After an insertion, three matches are at or before c, one too
// many. Reading two matches backwards from c returns c and b. So c leaves the window, and b is the new
// boundary.
//
// Invariant: moving a boundary reads at most one match more than the matches that it moves over. Only the new
// position is stored.

import FirestoreModel
import OrderedStore

/// Thrown if the store has fewer matches than a boundary's count. The caller then resets the target.
struct BoundaryOutOfSync: Error {}

extension FirestoreDatabase {
  /// Runs a query, sets the window's boundaries and delivers the visible documents page by page. A page may
  /// be empty.
  /// - Parameters:
  ///   - memory: the account from which memory for the pages is reserved; nil for a client in this process.
  ///   - maximumCount: the number of visible documents after which a query without limit stops; nil for no maximum.
  func deliverMatches(
    of query: PreparedQuery, _ window: inout ResultWindow, at version: Version, _ memory: (any ResultMemory)?,
    stoppingAfter maximumCount: Int? = nil,
    _ page: ([StoredDocument]) async throws -> Void
  ) async throws {
    let offset = window.skipped?.matchLimit ?? 0
    var structured = query.query.structured
    structured.select = nil
    structured.offset = 0
    structured.limit =
      window.shown?.matchLimit
      ?? maximumCount.map { count in
        let (sum, overflow) = offset.addingReportingOverflow(count)
        return overflow ? .max : sum
      }
    let all = try query.deriving(structured)
    var count = 0
    var last: StoredDocument?
    var lastSkipped: StoredDocument?
    try await deliverResults(of: all, at: version, memory) { documents in
      let skippedCount = min(max(offset - count, 0), documents.count)
      if skippedCount > 0 { lastSkipped = documents[skippedCount - 1] }
      count += documents.count
      last = documents.last ?? last
      try await page(Array(documents[skippedCount...]))
    }
    if window.skipped != nil {
      window.skipped?.count = min(count, offset)
      if count >= offset, let lastSkipped {
        window.skipped?.position = .at(try ResultWindow.SortPosition(lastSkipped, in: query))
      }
    }
    if let matchLimit = window.shown?.matchLimit {
      window.shown?.count = count
      if count >= matchLimit, let last {
        window.shown?.position = .at(try ResultWindow.SortPosition(last, in: query))
      }
    }
  }

  /// Adjusts a window's boundaries after changes.
  func adjust(_ update: inout WindowUpdate, of query: PreparedQuery, at version: Version) async throws {
    if let boundary = update.window.skipped {
      (update.window.skipped, update.skipped) = try await adjust(boundary, of: query, at: version)
    }
    if let boundary = update.window.shown {
      (update.window.shown, update.shown) = try await adjust(boundary, of: query, at: version)
    }
  }

  private func adjust(
    _ boundary: ResultWindow.Boundary, of query: PreparedQuery, at version: Version
  ) async throws -> (ResultWindow.Boundary, WindowUpdate.BoundaryCrossing) {
    var boundary = boundary
    var crossing = WindowUpdate.BoundaryCrossing()
    if boundary.count > boundary.matchLimit {
      // Too many matches are at or before the boundary. It moves back over the excess matches, to the match before
      // them.
      let excess = boundary.count - boundary.matchLimit
      let (paths, last) = try await neighbors(
        query, from: boundary.position, backwards: true, excess + 1, at: version)
      guard paths.count == excess + 1, let last else { throw BoundaryOutOfSync() }
      crossing.leaving = Set(paths.dropLast())
      boundary.position = .at(last)
      boundary.count = boundary.matchLimit
    } else if boundary.count < boundary.matchLimit, case .at = boundary.position {
      guard boundary.count >= 0 else { throw BoundaryOutOfSync() }
      let missing = boundary.matchLimit - boundary.count
      let (paths, last) = try await neighbors(
        query, from: boundary.position, backwards: false, missing, at: version)
      crossing.entering = Set(paths)
      boundary.count += paths.count
      if paths.count == missing, let last {
        boundary.position = .at(last)
      } else {
        boundary.position = .unbounded
      }
    }
    precondition(
      boundary.count <= boundary.matchLimit, "invariant: a boundary has at most its limit of matches")
    return (boundary, crossing)
  }

  /// The paths of up to `count` matches adjacent to a position, and the position of the last of them.
  private func neighbors(
    _ query: PreparedQuery, from position: ResultWindow.Position, backwards: Bool, _ count: Int,
    at version: Version
  ) async throws -> ([ResourcePath], ResultWindow.SortPosition?) {
    var structured = query.query.structured
    structured.select = nil
    structured.offset = 0
    if backwards {
      structured = structured.reversed
    } else {
      structured.orderBy = query.orders
    }
    structured.limit = count
    // Backwards, the match at the position is the first result. Forwards, the first result is the match after
    // it.
    if case .at(let position) = position {
      structured.startAt = Cursor(position.values(in: query), before: backwards)
    }
    let neighbours = try query.deriving(structured)
    var paths: [ResourcePath] = []
    var last: StoredDocument?
    try await deliverResults(of: neighbours, at: version) { documents in
      paths += documents.map(\.name.path)
      last = documents.last ?? last
    }
    return (paths, try last.map { try ResultWindow.SortPosition($0, in: query) })
  }
}
