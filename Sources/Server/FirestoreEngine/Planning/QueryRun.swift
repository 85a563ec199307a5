// A query being answered, page by page, all pages at one version.
//
// Invariant: the concatenated pages are the query's result: all matching documents in its order, then offset, then
// limit. A page holds a bounded number of documents and bytes; only results that no index orders are held whole, up
// to `EngineLimits.sortBytes`.

import FirestoreModel
import OrderedStore

/// A query's answer under way.
struct QueryRun: Sendable {
  /// What one look at the store gave.
  struct Page: Sendable {
    var documents: [StoredDocument] = []
    /// Results passed over for the offset in this page.
    var skipped = 0
    var isLast = false
  }

  let query: PreparedQuery
  private var plan: QueryPlan?
  /// The last document that was counted, delivered or skipped.
  private var last: StoredDocument?
  private var toSkip: Int
  private var left: Int
  /// Sorted results that are yet to be delivered, where they had to be held.
  private var held: ArraySlice<StoredDocument>?
  /// What was read so far, for validation.
  private(set) var keys: [Key] = []
  /// What a limit has spared reading.
  private var unread: KeyRange?

  init(_ query: PreparedQuery) {
    self.query = query
    toSkip = query.normalized.offset
    left = query.limit ?? .max
  }

  /// Makes the plan, if there is none yet.
  mutating func makePlan(_ view: any ReadView) throws -> QueryPlan {
    if let plan { return plan }
    let plan = try Planner(query).plan { prefix in
      var count = 0
      try view.scan(KeyRange(prefix: prefix), reverse: false) { _, _, _ in
        count += 1
        return count < QueryRun.commonEntries
      }
      return count >= QueryRun.commonEntries
    }
    self.plan = plan
    return plan
  }

  /// The ranges of the plan as far as they were read.
  var scanned: [KeyRange] {
    guard let plan else { return [] }
    guard let unread, let range = plan.ranges.first, plan.ranges.count == 1 else { return plan.ranges }
    return plan.reverse
      ? [KeyRange(start: unread.end ?? range.start, end: range.end)]
      : [KeyRange(start: range.start, end: unread.start)]
  }

  /// From this many entries on, an index prefix is not worth sorting if there is a limit.
  private static let commonEntries = 1_000

  /// The next page.
  mutating func nextPage(_ view: any ReadView, _ database: DatabaseName) throws -> Page {
    let plan = try makePlan(view)
    if left == 0 { return Page(isLast: true) }
    if held != nil { return takeHeld() }
    var candidates = Candidates(plan, database, view, after: plan.arrangement == .exact ? last : nil)
    defer {
      keys += candidates.keys
      unread = left == 0 && plan.arrangement != .unordered ? candidates.unread : nil
    }
    switch plan.arrangement {
    case .unordered:
      held = try sorted(&candidates)[...]
      return takeHeld()
    case .exact, .runs:
      if let last, case .index = plan.source, let field = query.orders.first?.field {
        try candidates.resume(atValueOf: last, field)
      }
      return try inOrder(&candidates, plan)
    }
  }

  // MARK: In order

  /// Reads on in the order of the source; neighbours that it does not order are sorted in memory.
  private mutating func inOrder(_ candidates: inout Candidates, _ plan: QueryPlan) throws -> Page {
    var page = Page()
    var bytes = 0
    var run: [Match] = []
    var runValue: ArraySlice<UInt8> = []
    let resumed = try last.map { Match(document: $0, fields: try $0.fields()) }
    while let candidate = try candidates.next() {
      let isRun = plan.arrangement == .runs || candidate.value.count >= IndexValue.cutLength
      if !run.isEmpty, !isRun || candidate.value != runValue {
        if try take(&run, &page, &bytes) { return page }
      }
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      let match = Match(document: candidate.document, fields: fields)
      // After a page's end, the run it ended in is read again.
      if let resumed, query.compare(match.pair, resumed.pair) != .descending { continue }
      run.append(match)
      runValue = candidate.value
      if !isRun, try take(&run, &page, &bytes) { return page }
    }
    if try take(&run, &page, &bytes) { return page }
    page.isLast = true
    return page
  }

  /// Moves a run into the page. True if the page is full, or the last.
  private mutating func take(_ run: inout [Match], _ page: inout Page, _ bytes: inout Int) throws -> Bool {
    if run.count > 1 { sort(&run) }
    defer { run.removeAll(keepingCapacity: true) }
    for match in run {
      last = match.document
      if toSkip > 0 {
        toSkip -= 1
        page.skipped += 1
        continue
      }
      page.documents.append(try match.document.masked(query.projection))
      bytes += match.document.encoded.count
      left -= 1
      if left == 0 {
        page.isLast = true
        return true
      }
      if page.documents.count >= EngineLimits.pageDocuments || bytes >= EngineLimits.pageBytes { return true }
    }
    return false
  }

  // MARK: Sorted

  private struct Match {
    var document: StoredDocument
    var fields: MapValue

    var pair: (DocumentName, MapValue) { (document.name, fields) }
  }

  private func sort(_ matches: inout [Match]) {
    matches.sort { query.compare($0.pair, $1.pair) == .ascending }
  }

  /// All results, sorted; with a limit only as many as can be delivered.
  private mutating func sorted(_ candidates: inout Candidates) throws -> [StoredDocument] {
    var matches: [Match] = []
    var bytes = 0
    let (sum, overflow) = toSkip.addingReportingOverflow(left)
    let wanted = overflow ? Int.max : sum
    while let candidate = try candidates.next() {
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      matches.append(Match(document: candidate.document, fields: fields))
      bytes += candidate.document.encoded.count
      let isOver = bytes > EngineLimits.sortBytes
      if wanted < .max / 4, matches.count > 2 * wanted + 64 || isOver, matches.count > wanted {
        sort(&matches)
        matches.removeLast(matches.count - wanted)
        bytes = matches.reduce(0) { $0 + $1.document.encoded.count }
      }
      if bytes > EngineLimits.sortBytes { throw QueryRun.tooLarge }
    }
    sort(&matches)
    return matches.map(\.document)
  }

  private static let tooLarge = FirestoreError.failedPrecondition(
    "The query requires an index. Its results exceed the \(EngineLimits.sortBytes >> 20) MiB that can be sorted "
      + "without one.")

  private mutating func takeHeld() -> Page {
    var page = Page()
    var bytes = 0
    while let document = held?.popFirst() {
      if toSkip > 0 {
        toSkip -= 1
        page.skipped += 1
        continue
      }
      // Projection cannot fail: the fields have been decoded once already.
      guard let masked = try? document.masked(query.projection) else { continue }
      page.documents.append(masked)
      bytes += document.encoded.count
      left -= 1
      if left == 0 { break }
      if page.documents.count >= EngineLimits.pageDocuments || bytes >= EngineLimits.pageBytes { return page }
    }
    page.isLast = true
    return page
  }
}
