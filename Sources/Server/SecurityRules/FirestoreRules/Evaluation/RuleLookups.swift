// Looks up the documents that rules read with `get()`, `exists()`, `getAfter()` and `existsAfter()`.
//
// Invariant: one request reads a document at most once before and once after its writes. The documents that were read
// are the dependencies of the decision.

package import FirestoreModel

/// Reads documents for rules.
package protocol RuleDocumentSource {
  /// The fields of a document at the state that the request reads, or nil if it does not exist.
  ///
  /// - Parameter afterWrites: whether to read the state after all writes of the request.
  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue?
}

/// The documents that the rules of one request have read.
package final class RuleLookups {
  private let source: any RuleDocumentSource
  private var documents: [Document] = []
  /// The documents that the current operation has read, as indices of `documents`.
  private var ofOperation: [Int] = []
  private let limit: Int
  /// An error of the source. The request then fails with this error, even if rules allow it.
  private(set) var failure: (any Error)?

  /// Documents that one operation may read.
  static let maximumOfOperation = 10
  /// Documents that a request with several operations may read.
  static let maximumOfRequest = 20

  private struct Document {
    let path: ResourcePath
    var before: MapValue??
    var after: MapValue??
  }

  /// Lookups for a request.
  ///
  /// - Parameter operationCount: the number of documents that the request reads or writes.
  package init(_ source: any RuleDocumentSource, operationCount: Int = 1) {
    self.source = source
    limit = operationCount > 1 ? Self.maximumOfRequest : Self.maximumOfOperation
  }

  /// The documents that were read, in the order of first use.
  package var paths: [ResourcePath] { documents.map(\.path) }

  /// Begins the rules of another operation, which has its own limit.
  func beginOperation() { ofOperation.removeAll(keepingCapacity: true) }

  /// Reads a document.
  ///
  /// - Returns: its fields, or nil if it does not exist.
  func fields(of path: ResourcePath, afterWrites: Bool) throws(RuleFault) -> MapValue? {
    let index = try index(of: path)
    if let known = afterWrites ? documents[index].after : documents[index].before { return known }
    do {
      let fields = try source.fields(of: path, afterWrites: afterWrites)
      if afterWrites {
        documents[index].after = .some(fields)
      } else {
        documents[index].before = .some(fields)
      }
      return fields
    } catch {
      failure = error
      throw .invalidLookup
    }
  }

  private func index(of path: ResourcePath) throws(RuleFault) -> Int {
    let known = documents.firstIndex { $0.path == path }
    if let known, ofOperation.contains(known) { return known }
    guard ofOperation.count < Self.maximumOfOperation else { throw .lookupLimit(Self.maximumOfOperation) }
    if known == nil, documents.count >= limit { throw .lookupLimit(limit) }
    let index = known ?? documents.count
    if known == nil { documents.append(Document(path: path, before: nil, after: nil)) }
    ofOperation.append(index)
    return index
  }
}
