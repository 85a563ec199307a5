// Where a window's edges are found, and moved on: by reading the query's index from the edge.
//
// Invariant: moving an edge reads as many matches as it moves over, and one more; nothing is kept but the edge.

import FirestoreModel
import OrderedStore

/// An edge's count and the store disagree: the target has to start over.
struct WindowLost: Error {}

extension FirestoreDatabase {
  /// Sets a window's edges, and hands over the documents inside, page by page; a page may be empty.
  /// - Parameter most: how many of the documents inside are of use where no limit bounds them; nil for all.
  func matches(
    of query: PreparedQuery, _ window: inout ResultWindow, at version: Version, unlimited most: Int? = nil,
    _ page: ([StoredDocument]) async throws -> Void
  ) async throws {
    let offset = window.skipped?.rank ?? 0
    var structured = query.query.structured
    structured.select = nil
    structured.offset = 0
    structured.limit =
      window.shown?.rank
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
      if count >= offset, let skip { window.skipped?.position = .at(try ResultWindow.Mark(skip, in: query)) }
    }
    if let rank = window.shown?.rank {
      window.shown?.count = count
      if count >= rank, let last { window.shown?.position = .at(try ResultWindow.Mark(last, in: query)) }
    }
  }

  /// Moves a window's edges to where they belong after changes.
  func settle(_ moves: inout WindowMoves, of query: PreparedQuery, at version: Version) async throws {
    if let edge = moves.window.skipped {
      (moves.window.skipped, moves.skipped) = try await settle(edge, of: query, at: version)
    }
    if let edge = moves.window.shown {
      (moves.window.shown, moves.shown) = try await settle(edge, of: query, at: version)
    }
  }

  private func settle(
    _ edge: ResultWindow.Edge, of query: PreparedQuery, at version: Version
  ) async throws -> (ResultWindow.Edge, WindowMoves.Crossing) {
    var edge = edge
    var crossing = WindowMoves.Crossing()
    if edge.count > edge.rank {
      // Too many within: back over the last of them, to the one before.
      let excess = edge.count - edge.rank
      let (paths, last) = try await walk(query, from: edge.position, backwards: true, excess + 1, at: version)
      guard paths.count == excess + 1, let last else { throw WindowLost() }
      crossing.outward = Set(paths.dropLast())
      edge.position = .at(last)
      edge.count = edge.rank
    } else if edge.count < edge.rank, case .at = edge.position {
      guard edge.count >= 0 else { throw WindowLost() }
      let missing = edge.rank - edge.count
      let (paths, last) = try await walk(query, from: edge.position, backwards: false, missing, at: version)
      crossing.inward = Set(paths)
      edge.count += paths.count
      if paths.count == missing, let last { edge.position = .at(last) } else { edge.position = .everywhere }
    }
    return (edge, crossing)
  }

  /// The matches next to a position, and the place of the last of them.
  private func walk(
    _ query: PreparedQuery, from position: ResultWindow.Position, backwards: Bool, _ count: Int,
    at version: Version
  ) async throws -> ([ResourcePath], ResultWindow.Mark?) {
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
    if case .at(let mark) = position {
      structured.startAt = Cursor(mark.values(in: query), before: backwards)
    }
    let neighbours = try query.deriving(structured)
    var paths: [ResourcePath] = []
    var last: StoredDocument?
    try await results(of: neighbours, at: version) { documents in
      paths += documents.map(\.name.path)
      last = documents.last ?? last
    }
    return (paths, try last.map { try ResultWindow.Mark($0, in: query) })
  }
}
