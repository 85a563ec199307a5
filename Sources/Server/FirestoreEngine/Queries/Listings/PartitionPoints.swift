// Finds points that split a collection group into parts of similar size: names at equal distances in one scan
// of all names.
//
// The number of names is known only at the end of the scan. Therefore the scan keeps every k-th key. Whenever
// it holds too many keys, it doubles k and drops every second key. So memory is bounded, and the kept keys
// are evenly spread.

import Access
import FirestoreModel
import OrderedStore

/// Keeps evenly spread samples of the keys of a scan whose length is unknown.
struct KeySamples: Sendable {
  private let maximumKeys: Int
  private let maximumBytes: Int
  private var stride = 1
  private var keys: [Key] = []
  private var bytes = 0
  /// The number of scanned keys.
  private(set) var count = 0

  init(
    keys: Int = EngineLimits.maximumPartitionSamples, bytes: Int = EngineLimits.maximumPartitionSampleBytes
  ) {
    maximumKeys = keys
    maximumBytes = bytes
  }

  /// Adds the next key.
  mutating func add(_ key: some Collection<UInt8>) {
    if count.isMultiple(of: stride) {
      keys.append(Array(key))
      bytes += key.count
      if keys.count > maximumKeys || bytes > maximumBytes { thin() }
    }
    count += 1
  }

  private mutating func thin() {
    keys = keys.indices.filter { $0.isMultiple(of: 2) }.map { keys[$0] }
    bytes = keys.reduce(0) { $0 + $1.count }
    stride *= 2
  }

  /// At most `limit` keys that split the scanned keys into parts of similar size. No part has far fewer than
  /// `minimumPartKeys` keys.
  func points(atMost limit: Int, minimumPartKeys: Int = EngineLimits.minimumPartitionDocuments) -> [Key] {
    let parts = min(min(limit, EngineLimits.maximumPartitionPoints) + 1, count / minimumPartKeys, keys.count)
    guard parts > 1 else { return [] }
    return (1..<parts).map { keys[keys.count * $0 / parts] }
  }
}

extension FirestoreDatabase {
  /// One page of the points that partition a collection group.
  func partition(
    _ request: PartitionQueryRequest, _ group: String, _ size: Int, as caller: Principal
  ) async throws -> PartitionQueryPage {
    try await authoriseWithoutData(caller, .partition(request.query))
    let owner = TokenOwner(caller, in: name)
    var session = try await beginRead(request.consistency, [], as: caller)
    defer { endRead(session) }
    var last: ResourcePath?
    if !request.pageToken.isEmpty {
      let token = try PageToken(
        request.pageToken, of: request.binding(options.limits.data), signer, for: owner)
      last = token.last
      if session.version == nil { session.version = token.version }
    }
    let points = try await points(request, group, &session).filter { point in
      last.map { ResourcePath.compare(point.path, $0) == .descending } ?? true
    }
    var token = ""
    if points.count > size, let version = session.version {
      token = try PageToken(
        of: request.binding(options.limits.data), version: version, last: points[size - 1].path
      ).text(signer, for: owner)
    }
    return PartitionQueryPage(points: Array(points.prefix(size)), nextPageToken: token)
  }

  private func points(
    _ request: PartitionQueryRequest, _ group: String, _ session: inout ReadSession
  ) async throws -> [DocumentName] {
    let query = request.query
    var samples = KeySamples()
    var rest: KeyRange? = KeyRange(prefix: FirestoreKeyLayout.group(group, below: query.parent.path))
    while let range = rest {
      try Task.checkCancellation()
      (samples, rest) = try await read(&session) { [samples] view in
        var samples = samples
        var visited = 0
        var last: Key?
        let skipped = try view.scan(range, reverse: false, maximumHidden: EngineLimits.maximumPartitionScan) {
          key, _, _ in
          samples.add(key)
          visited += 1
          if visited == EngineLimits.maximumPartitionScan { last = Array(key) }
          return last == nil
        }
        return (samples, (skipped.last ?? last).map { range.remainder(after: $0, reverse: false) })
      }
    }
    return try samples.points(atMost: request.count).map { key in
      guard let path = FirestoreKeyLayout.documentPath(ofGroupRow: key),
        let name = DocumentName(database: name, path: path)
      else {
        throw FirestoreError(.dataLoss, "A row of the collection group \(group) has no document's name.")
      }
      return name
    }
  }
}
