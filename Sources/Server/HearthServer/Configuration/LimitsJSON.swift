// Parses a limits file, which raises limits of the products: `{"firestore": {"documentBytes": 4194304},
// "realtime": {"depth": 64}}`. The file may contain comments.
//
// Invariant: no member of the file is ignored. An unknown or invalid member is an error with line, column and
// the limit's name.

/// Reads limits files.
enum LimitsJSON {
  private static let products = ["firestore", "realtime"]

  /// Parses the limits of a file.
  /// - Parameter path: the name of the file, for messages.
  /// - Throws: ``HearthError`` with line and column.
  static func read(_ bytes: [UInt8], path: String) throws(HearthError) -> ServerLimits {
    let root = try LocatedJSON.parse(bytes, path: path)
    func error(_ value: LocatedJSON, _ jsonPath: String, _ problem: String) -> HearthError {
      HearthError(
        "\(path):\(LocatedJSON.lineAndColumn(of: value.offset, in: bytes)): \(jsonPath) \(problem).")
    }
    guard case .object(let sections) = root.content else {
      throw error(root, "the file", "must be an object")
    }
    var limits = ServerLimits()
    for (product, section) in sections {
      guard products.contains(product) else {
        throw error(
          section, product, "is not known; a limits file has \(products.joined(separator: " and "))")
      }
      guard case .object(let members) = section.content else {
        throw error(section, product, "must be an object")
      }
      let adjustable = ServerLimits.adjustable.filter { $0.product == product }
      for (name, value) in members {
        let jsonPath = "\(product).\(name)"
        guard let limit = adjustable.first(where: { $0.name == name }) else {
          let names = adjustable.map(\.name).sorted().joined(separator: ", ")
          throw error(value, jsonPath, "is not a limit that can be raised; these can: \(names)")
        }
        guard case .number(let number) = value.content, let integer = Int(exactly: number) else {
          throw error(value, jsonPath, "must be a whole number, \(limit.standard) to \(limit.ceiling)")
        }
        do throws(HearthError) { try limits.set(limit, to: integer) } catch let problem {
          throw error(value, jsonPath, "\(problem)")
        }
      }
    }
    do throws(HearthError) { try limits.validate() } catch { throw HearthError("\(path): \(error)") }
    return limits
  }
}
