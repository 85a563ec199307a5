// Streams a value that is too large for memory. It converts rows to JSON in chunks, all from one state of the
// database.
//
// Invariants
//   1. Memory holds one chunk.
//   2. The state stays pinned exactly as long as the export exists.

package import Access
import OrderedStore
package import RealtimeModel

/// A value that is read in chunks, one after the other.
package actor RealtimeExport {
  private let pinned: any PinnedView
  private let generations: DurableGenerations
  private var writer: any TreeWriter
  private var isOver = false

  /// The approximate bytes of a chunk; more if it contains a larger leaf.
  package static let chunkBytes = 128 << 10

  init(_ pinned: any PinnedView, _ generations: DurableGenerations, _ writer: any TreeWriter) {
    self.pinned = pinned
    self.generations = generations
    self.writer = writer
  }

  /// The next chunk of JSON; nil after the last.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` if the store cannot be read.
  package func next() async throws(RealtimeError) -> (bytes: [UInt8], isLast: Bool)? {
    guard !isOver else { return nil }
    do {
      let (chunk, after) = try await pinned.read { [generations, writer] base in
        var writer = writer
        let view = try generations.view(base)
        while !writer.isOver, writer.count < RealtimeExport.chunkBytes { try writer.write(from: view) }
        return (writer.takeOutput(), writer)
      }
      writer = after
      isOver = after.isOver
      return (chunk, isOver)
    } catch { throw RealtimeError(storeError: error) }
  }
}

/// Writes rows as JSON. Each call continues where the previous call stopped.
protocol TreeWriter: Sendable {
  /// Whether everything is written.
  var isOver: Bool { get }
  /// The number of bytes that are written but not yet taken by `takeOutput`.
  var count: Int { get }
  /// Writes up to one more chunk.
  mutating func write(from view: any ReadView) throws
  /// Returns the bytes written since the last call.
  mutating func takeOutput() -> [UInt8]
}

/// Writes the export format in one scan over the rows.
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

  mutating func takeOutput() -> [UInt8] { writer.take() }

  mutating func write(from view: any ReadView) throws {
    var last: [UInt8]?
    try view.scan(
      KeyRange(start: next, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      var decoder = NodeDecoder(value)
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      writer.row(RowKeys.keys(in: suffix), try decoder.node())
      if writer.count >= RealtimeExport.chunkBytes { last = Array(key) }
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
  /// Reads a location if it is not larger than a chunk; otherwise nil.
  ///
  /// - Throws: the errors of ``get(_:query:as:)``.
  package func getIfSmall(_ path: Path, as caller: Principal) async throws(RealtimeError) -> Node? {
    let caller = caller.acting(in: project)
    var limits = limits
    limits.responseBytes = min(limits.responseBytes, RealtimeExport.chunkBytes)
    do {
      return try await runner.node(at: path, caller, limits)
    } catch {
      if (error as? RealtimeError) == .tooBig { return nil }
      throw RealtimeError(storeError: error)
    }
  }

  /// Starts reading a location in chunks of JSON.
  ///
  /// - Parameters:
  ///   - isExport: true for the format of backups, which has priorities and no arrays; false for plain
  ///     values.
  ///   - pretty: whether each member of an object gets a separate line.
  ///   - isLimited: whether plain values are limited to the size of a response.
  /// - Throws: ``RealtimeModel/RealtimeError`` with status `permission_denied`; with `too_big` for plain
  ///   values above the limit of a response (an export has no limit); or if the store cannot be read.
  package func export(
    _ path: Path, isExport: Bool, pretty: Bool = false, isLimited: Bool = true, as caller: Principal
  ) async throws(RealtimeError) -> RealtimeExport {
    let caller = caller.acting(in: project)
    let writer: any TreeWriter =
      isExport ? ExportWriter(path, pretty: pretty) : PlainWriter(path, pretty: pretty)
    do {
      let pinned = try rows.current?.pinView() ?? EmptyPinnedView(view: rows.emptyView)
      try await runner.mayRead(path, caller, in: pinned)
      if !isExport, isLimited { try await runner.measure(path, in: pinned) }
      return RealtimeExport(pinned, runner.executor.generations.durable, writer)
    } catch { throw RealtimeError(storeError: error) }
  }
}

/// The view of a database without rows.
private struct EmptyPinnedView: PinnedView {
  let view: any ReadView & Sendable
  var version: Version { view.version }

  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result { try body(view) }
}
