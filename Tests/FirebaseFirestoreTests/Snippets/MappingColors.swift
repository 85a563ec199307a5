// swift-format-ignore-file
// Programs of Firebase's guide about mapping colors. The file compiles only if the SDK is source-compatible.
// The code is unchanged and contains force unwraps, so the formatter ignores it. Replacements for Apple's
// frameworks are marked.

import FirebaseFirestore
import Foundation

// Replaces SwiftUI.Color. It has the initializer that the guide's code uses.
struct Color: Hashable {
  enum RGBColorSpace { case sRGB }
  var red, green, blue, opacity: Double
  init(_ space: RGBColorSpace, red: Double, green: Double, blue: Double, opacity: Double) {
    self.red = red; self.green = green; self.blue = blue; self.opacity = opacity
  }
}

// The guide's code does not write `any`. With these aliases, its type names mean `any` types.
extension Color {
  typealias Decoder = any Swift.Decoder
  typealias Encoder = any Swift.Encoder
}

extension MappingColorsViewModel {
  typealias ListenerRegistration = any FirebaseFirestore.ListenerRegistration
}

extension String {
  func toRGBA() -> (r: Double, g: Double, b: Double, alpha: Double) {
    let digits = hasPrefix("#") ? String(dropFirst()) : self
    let n = UInt32(digits, radix: 16) ?? 0
    let rgba = digits.count == 8 ? n : n << 8 | 0xff
    func part(_ shift: UInt32) -> Double { Double(rgba >> shift & 0xff) / 255 }
    return (part(24), part(16), part(8), part(0))
  }
}

extension Color {

  init(hex: String) {
    let rgba = hex.toRGBA()

    self.init(
      .sRGB,
      red: Double(rgba.r),
      green: Double(rgba.g),
      blue: Double(rgba.b),
      opacity: Double(rgba.alpha))
  }

  var toHex: String {
    "#" + [red, green, blue, opacity].map { String(format: "%02X", Int(($0 * 255).rounded())) }.joined()
  }
}

extension Color: Codable {

  public init(from decoder: Decoder) throws {
    let container = try decoder.singleValueContainer()
    let hex = try container.decode(String.self)

    self.init(hex: hex)
  }

  public func encode(to encoder: Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(toHex)
  }

}

struct Tag: Codable, Hashable {
  var title: String
  var color: Color
}

struct BookWithTags: Codable {
  @DocumentID var id: String?
  var title: String
  var numberOfPages: Int
  var author: String
  var tags: [Tag]
}

// The guide does not declare this type. Its properties follow from their uses.
struct ColorEntry: Codable, Hashable, Identifiable {
  @DocumentID var id: String?
  var color: Color
  static var empty: ColorEntry { ColorEntry(id: nil, color: Color(hex: "#000000")) }
}

class MappingColorsViewModel: ObservableObject {
  @Published var colorEntries = [ColorEntry]()
  @Published var newColor = ColorEntry.empty
  @Published var errorMessage: String?

  private var db = Firestore.firestore()
  private var listenerRegistration: ListenerRegistration?

  public func unsubscribe() {
    if listenerRegistration != nil {
      listenerRegistration?.remove()
      listenerRegistration = nil
    }
  }

  func subscribe() {
    if listenerRegistration == nil {
      listenerRegistration = db.collection("colors")
        .addSnapshotListener { [weak self] (querySnapshot, error) in
          guard let documents = querySnapshot?.documents else {
            self?.errorMessage = "No documents in 'colors' collection"
            return
          }

          self?.colorEntries = documents.compactMap { queryDocumentSnapshot in
            // The guide uses data(as: ColorEntry.self), which returned an optional at that time.
            let result = Result { try queryDocumentSnapshot.data(as: ColorEntry?.self) }

            switch result {
            case .success(let colorEntry):
              if let colorEntry = colorEntry {
                // A ColorEntry value was successfully initialized from the DocumentSnapshot.
                self?.errorMessage = nil
                return colorEntry
              } else {
                // A nil value was successfully initialized from the DocumentSnapshot,
                // or the DocumentSnapshot was nil.
                self?.errorMessage = "Document doesn't exist."
                return nil
              }
            case .failure(let error):
              // A ColorEntry value could not be initialized from the DocumentSnapshot.
              switch error {
              case DecodingError.typeMismatch(_, let context):
                self?.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
              case DecodingError.valueNotFound(_, let context):
                self?.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
              case DecodingError.keyNotFound(_, let context):
                self?.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
              case DecodingError.dataCorrupted(let key):
                self?.errorMessage = "\(error.localizedDescription): \(key)"
              default:
                self?.errorMessage = "Error decoding document: \(error.localizedDescription)"
              }
              return nil
            }
          }
        }
    }
  }

  func addColorEntry() {
    let collectionRef = db.collection("colors")
    do {
      let newDocReference = try collectionRef.addDocument(from: newColor)
      print("ColorEntry stored with new document reference: \(newDocReference)")
    } catch {
      print(error)
    }
  }
}
