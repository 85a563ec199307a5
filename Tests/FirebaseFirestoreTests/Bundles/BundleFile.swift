// A bundle file, built for tests. Google's server libraries write times and limits in two JSON dialects.

import Foundation

struct BundleFile {
  typealias JSON = [String: Any]

  /// The JSON format of times and limits.
  enum Dialect: CaseIterable {
    /// RFC 3339 strings and plain numbers.
    case plain
    /// Objects with seconds and nanoseconds, and limits inside an object.
    case objects
  }

  var dialect = Dialect.plain
  var database = "projects/demo-sdk/databases/(default)"
  var id = "bundle"
  var createTime: TimeInterval = 1_000_000
  var elements: [JSON] = []
  var documentCount = 0

  func time(_ seconds: TimeInterval) -> Any {
    let whole = Int(seconds.rounded(.down))
    let nanos = Int(((seconds - Double(whole)) * 1_000_000).rounded()) * 1000
    switch dialect {
    case .objects: return ["seconds": "\(whole)", "nanos": nanos] as JSON
    case .plain:
      let date = Date(timeIntervalSince1970: TimeInterval(whole)).formatted(.iso8601)
      return date.replacingOccurrences(of: "Z", with: String(format: ".%09dZ", nanos))
    }
  }

  func name(_ path: String) -> String { "\(database)/documents/\(path)" }

  mutating func add(_ path: String, _ fields: JSON?, at seconds: TimeInterval, queries: [String] = []) {
    documentCount += 1
    var metadata: JSON = ["name": name(path), "readTime": time(seconds), "queries": queries]
    if fields != nil { metadata["exists"] = true }
    elements.append(["documentMetadata": metadata])
    guard let fields else { return }
    elements.append([
      "document": [
        "name": name(path), "fields": fields, "createTime": time(seconds), "updateTime": time(seconds),
      ] as JSON
    ])
  }

  mutating func addQuery(
    _ query: String, _ structured: JSON, limitType: String? = nil, at seconds: TimeInterval
  ) {
    var bundled: JSON = ["parent": "\(database)/documents", "structuredQuery": structured]
    if let limitType { bundled["limitType"] = limitType }
    let body: JSON = ["name": query, "bundledQuery": bundled, "readTime": time(seconds)]
    elements.append(["namedQuery": body])
  }

  static func bytes(_ element: JSON) -> Data {
    let json = (try? JSONSerialization.data(withJSONObject: element)) ?? Data()
    return Data("\(json.count)".utf8) + json
  }

  var data: Data {
    let body = elements.reduce(Data()) { $0 + BundleFile.bytes($1) }
    let metadata: JSON = [
      "id": id, "version": 1, "createTime": time(createTime), "totalDocuments": documentCount,
      "totalBytes": dialect == .plain ? body.count as Any : "\(body.count)",
    ]
    return BundleFile.bytes(["metadata": metadata]) + body
  }
}
