// Looks up the documents that rules read with `get()`, `exists()`, `getAfter()` and `existsAfter()`.
//
// Invariant: for one request, a document is read at most once in its state before the request's writes, and at most once
// in its state after them. The documents that were read are the dependencies of the decision.

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
  /// The documents that rules have read for the request so far. A large request is decided in several parts, and the
  /// next part continues with this state.
  private(set) var state: State
  /// The documents that the current operation has read, as indices of `state.documents`.
  private var operationDocuments: [Int] = []
  private let limit: Int
  /// An error of the source. The request then fails with this error, even if rules allow it.
  private(set) var failure: (any Error)?

  /// Maximum documents that one operation may read.
  static let maximumPerOperation = 10
  /// Maximum documents that a request with several operations may read.
  static let maximumPerRequest = 20

  /// The documents that were read, in the order of first use.
  struct State: Sendable {
    fileprivate struct Document: Sendable {
      let path: ResourcePath
      var before: MapValue??
      var after: MapValue??
    }

    fileprivate var documents: [Document] = []
  }

  /// Lookups for a request.
  ///
  /// - Parameters:
  ///   - operationCount: the number of documents that the request reads or writes.
  ///   - state: the documents that earlier parts of the decision have read.
  init(_ source: any RuleDocumentSource, operationCount: Int = 1, state: State = State()) {
    self.source = source
    self.state = state
    limit = operationCount > 1 ? Self.maximumPerRequest : Self.maximumPerOperation
  }

  /// The documents that were read, in the order of first use.
  package var paths: [ResourcePath] { state.documents.map(\.path) }

  /// Begins the rules of another operation, which has a separate limit.
  func beginOperation() { operationDocuments.removeAll(keepingCapacity: true) }

  /// Reads a document.
  ///
  /// - Returns: its fields, or nil if it does not exist.
  func fields(of path: ResourcePath, afterWrites: Bool) throws(RuleFault) -> MapValue? {
    let index = try index(of: path)
    let document = state.documents[index]
    if let fields = afterWrites ? document.after : document.before { return fields }
    do {
      let fields = try source.fields(of: path, afterWrites: afterWrites)
      if afterWrites {
        state.documents[index].after = .some(fields)
      } else {
        state.documents[index].before = .some(fields)
      }
      return fields
    } catch {
      failure = error
      throw .invalidLookup
    }
  }

  /// Reads a document that the request itself names. It does not count as a document that rules have read.
  ///
  /// - Returns: its fields; nil if it does not exist, or after an error, which becomes the request's failure.
  func requestedFields(of path: ResourcePath) -> MapValue? {
    do { return try source.fields(of: path, afterWrites: false) } catch {
      failure = error
      return nil
    }
  }

  private func index(of path: ResourcePath) throws(RuleFault) -> Int {
    let existing = state.documents.firstIndex { $0.path == path }
    if let existing, operationDocuments.contains(existing) { return existing }
    guard operationDocuments.count < Self.maximumPerOperation else {
      throw .lookupLimit(Self.maximumPerOperation)
    }
    if existing == nil, state.documents.count >= limit { throw .lookupLimit(limit) }
    let index = existing ?? state.documents.count
    if existing == nil { state.documents.append(State.Document(path: path, before: nil, after: nil)) }
    operationDocuments.append(index)
    return index
  }
}
