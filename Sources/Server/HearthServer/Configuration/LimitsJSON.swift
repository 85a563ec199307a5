// A limits file: `{"firestore": {"documentBytes": 4194304}, "realtime": {"depth": 64}}`; comments are space.
//
// Invariant: what the file says either takes effect, or is an error that names line, column and limit.

/// Reads limits files.
enum LimitsJSON {
  private static let products = ["firestore", "realtime"]

  /// The limits that a file gives.
  /// - Parameter path: the file's name, for messages.
  /// - Throws: ``HearthError`` with line and column.
  static func read(_ bytes: [UInt8], path: String) throws(HearthError) -> ServerLimits {
    let root = try LocatedJSON.parse(bytes, path: path)
    func error(_ value: LocatedJSON, _ place: String, _ what: String) -> HearthError {
      HearthError("\(path):\(LocatedJSON.place(of: value.offset, in: bytes)): \(place) \(what).")
    }
    guard case .object(let parts) = root.content else { throw error(root, "the file", "must be an object") }
    var limits = ServerLimits()
    for (product, part) in parts {
      guard products.contains(product) else {
        throw error(part, product, "is not known; a limits file has \(products.joined(separator: " and "))")
      }
      guard case .object(let members) = part.content else { throw error(part, product, "must be an object") }
      let known = ServerLimits.adjustable.filter { $0.product == product }
      for (name, value) in members {
        let place = "\(product).\(name)"
        guard let limit = known.first(where: { $0.name == name }) else {
          let names = known.map(\.name).sorted().joined(separator: ", ")
          throw error(value, place, "is not a limit that can be raised; these can: \(names)")
        }
        guard case .number(let number) = value.content, let whole = Int(exactly: number) else {
          throw error(value, place, "must be a whole number, \(limit.standard) to \(limit.ceiling)")
        }
        do throws(HearthError) { try limits.set(limit, to: whole) } catch let refusal {
          throw error(value, place, "\(refusal)")
        }
      }
    }
    do throws(HearthError) { try limits.validate() } catch { throw HearthError("\(path): \(error)") }
    return limits
  }
}
