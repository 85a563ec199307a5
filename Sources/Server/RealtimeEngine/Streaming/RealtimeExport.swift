// A value that is too large for memory on its way out: rows become JSON a piece at a time, all of one state.
//
// Invariants: what is held is one piece; the state is held as long as somebody reads on, and no longer.

import OrderedStore
public import RealtimeModel

/// A value that is read piece by piece. Pieces are asked for one after the other.
public actor RealtimeExport {
  private let held: any PinnedView
  private let generations: DurableGenerations
  private var writer: any TreeWriter
  private var isOver = false

  /// About how many bytes one piece has; one with a larger leaf has more.
  public static let pieceBytes = 128 << 10

  init(_ held: any PinnedView, _ generations: DurableGenerations, _ writer: any TreeWriter) {
    self.held = held
    self.generations = generations
    self.writer = writer
  }

  /// The next piece of the JSON text; nil behind the last.
  /// - Throws: ``RealtimeModel/RealtimeError`` when the store cannot be read.
  public func next() async throws(RealtimeError) -> (bytes: [UInt8], isLast: Bool)? {
    guard !isOver else { return nil }
    do {
      let (piece, after) = try await held.read { [generations, writer] base in
        var writer = writer
        let view = try generations.view(base)
        while !writer.isOver, writer.count < RealtimeExport.pieceBytes { try writer.go(on: view) }
        return (writer.take(), writer)
      }
      writer = after
      isOver = after.isOver
      return (piece, isOver)
    } catch { throw RealtimeError(storeError: error) }
  }
}

/// Writes what rows hold, from where it stopped.
protocol TreeWriter: Sendable {
  /// Whether everything was written.
  var isOver: Bool { get }
  /// How many bytes wait to be taken.
  var count: Int { get }
  /// Writes more, a piece at most.
  mutating func go(on view: any ReadView) throws
  /// Takes what was written since the last call.
  mutating func take() -> [UInt8]
}

/// The export format: one walk over the rows as they lie.
struct ExportWriter: TreeWriter {
  private let prefix: [UInt8]
  private var next: [UInt8]
  private var writer: NodeStreamWriter
  private(set) var isOver = false

  init(_ path: Path, pretty: Bool) {
    prefix = RowKeys.row(of: path)
    next = prefix
    writer = NodeStreamWriter(pretty: pretty)
  }

  var count: Int { writer.count }

  mutating func take() -> [UInt8] { writer.take() }

  mutating func go(on view: any ReadView) throws {
    var last: [UInt8]?
    try view.scan(
      KeyRange(start: next, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      var decoder = NodeDecoder(value)
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      writer.row(RowKeys.keys(in: suffix), try decoder.node())
      if writer.count >= RealtimeExport.pieceBytes { last = Array(key) }
      return last == nil
    }
    if let last {
      next = last + [0]
    } else {
      writer.finish()
      isOver = true
    }
  }
}

extension RealtimeDatabase {
  /// Reads a location if it is small; nil if it is larger than a piece of an export.
  /// - Throws: as ``get(_:query:as:)``.
  public func getIfSmall(_ path: Path, as caller: Caller) async throws(RealtimeError) -> Node? {
    var limits = limits
    limits.responseBytes = min(limits.responseBytes, RealtimeExport.pieceBytes)
    do {
      return try await runner.node(at: path, caller, limits)
    } catch {
      if (error as? RealtimeError) == .tooBig { return nil }
      throw RealtimeError(storeError: error)
    }
  }

  /// Begins to read a location piece by piece, as JSON.
  ///
  /// - Parameters:
  ///   - isExport: with priorities and never as arrays, the form of backups; else plain values.
  ///   - pretty: one member a line.
  ///   - isLimited: whether the limit of an answer holds for plain values.
  /// - Throws: ``RealtimeModel/RealtimeError`` with status `permission_denied`, or `too_big` for plain values above the
  ///   limit of an answer (an export has none), or when the store cannot be read.
  public func export(
    _ path: Path, isExport: Bool, pretty: Bool = false, isLimited: Bool = true, as caller: Caller
  ) async throws(RealtimeError) -> RealtimeExport {
    let writer: any TreeWriter =
      isExport ? ExportWriter(path, pretty: pretty) : PlainWriter(path, pretty: pretty)
    do {
      let held = try rows.current?.pinView() ?? HeldNothing(view: rows.emptyView)
      try await runner.mayRead(path, caller, in: held)
      if !isExport, isLimited { try await runner.measure(path, in: held) }
      return RealtimeExport(held, runner.sequencer.generations.durable, writer)
    } catch { throw RealtimeError(storeError: error) }
  }
}

/// A database that was never written to.
private struct HeldNothing: PinnedView {
  let view: any ReadView & Sendable
  var version: Version { view.version }

  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result { try body(view) }
}
