// Where a window's edges are found, and moved on: by reading the query's index from the edge.
//
// Invariant: moving an edge reads as many matches as it moves over, and one more; nothing is kept but the edge.

import FirestoreModel
import OrderedStore

/// An edge's count and the store disagree: the target has to start over.
struct BoundaryOutOfSync: Error {}

extension FirestoreDatabase {
  /// Sets a window's edges, and hands over the documents inside, page by page; a page may be empty.
  /// - Parameter most: how many of the documents inside are of use where no limit bounds them; nil for all.
  func matches(
    of query: PreparedQuery, _ window: inout ResultWindow, at version: Version, unlimited most: Int? = nil,
    _ page: ([StoredDocument]) async throws -> Void
  ) async throws {
    let offset = window.skipped?.matchLimit ?? 0
    var structured = query.query.structured
    structured.select = nil
    structured.offset = 0
    structured.limit =
      window.shown?.matchLimit
      ?? most.map { most in
        let (sum, overflow) = offset.addingReportingOverflow(most)
        return overflow ? .max : sum
      }
    let all = try query.deriving(structured)
    var count = 0
    var last: StoredDocument?
    var skip: StoredDocument?
    try await results(of: all, at: version) { documents in
      let skips = min(max(offset - count, 0), documents.count)
      if skips > 0 { skip = documents[skips - 1] }
      count += documents.count
      last = documents.last ?? last
      try await page(Array(documents[skips...]))
    }
    if window.skipped != nil {
      window.skipped?.count = min(count, offset)
      if count >= offset, let skip {
        window.skipped?.position = .at(try ResultWindow.SortPosition(skip, in: query))
      }
    }
    if let matchLimit = window.shown?.matchLimit {
      window.shown?.count = count
      if count >= matchLimit, let last {
        window.shown?.position = .at(try ResultWindow.SortPosition(last, in: query))
      }
    }
  }

  /// Moves a window's edges to where they belong after changes.
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
      // Too many within: back over the last of them, to the one before.
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
    return (boundary, crossing)
  }

  /// The matches next to a position, and the place of the last of them.
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
    // Backwards the place itself counts, forwards it does not.
    if case .at(let position) = position {
      structured.startAt = Cursor(position.values(in: query), before: backwards)
    }
    let neighbours = try query.deriving(structured)
    var paths: [ResourcePath] = []
    var last: StoredDocument?
    try await results(of: neighbours, at: version) { documents in
      paths += documents.map(\.name.path)
      last = documents.last ?? last
    }
    return (paths, try last.map { try ResultWindow.SortPosition($0, in: query) })
  }
}
