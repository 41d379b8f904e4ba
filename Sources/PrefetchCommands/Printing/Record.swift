internal import PrefetchModel

/// An object of an answer as a list of its members: its JSON, docs/schema.json and the columns of tables are made of them.
/// Members may be added, none is ever removed.
protocol Record: Shown {
    static var fields: [Field<Self>] { get }
}

extension Record {
    var json: JSONText {
        .object(
            Self.fields.compactMap { field in
                field.name.isEmpty ? nil : field.value(self).map { (field.name, $0.json) }
            })
    }

    static var shape: Shape {
        .object(
            fields.filter { !$0.name.isEmpty }.map {
                Shape.Member(name: $0.name, about: $0.about, isRequired: $0.isRequired, shape: $0.shape())
            })
    }

    /// `12 imported, 0 there already, 3 refused`: the numbers with their titles, without those that are 0 after the first ones.
    func sum(keeping kept: Int) -> String {
        let parts = Self.fields.compactMap { field in
            field.title.flatMap { title in field.value(self).map { (title: title, value: $0) } }
        }
        return parts.enumerated().filter { $0 < kept || $1.value.number != 0 }
            .map { "\($1.value.text) \($1.title)" }.joined(separator: ", ")
    }
}

/// A member of an object: its name, what it means, and its value. With a title people read it too.
struct Field<Root>: Sendable {
    /// Empty: people alone read it.
    let name: String
    /// In a line or as the head of a column; nil: programs alone read it.
    let title: String?
    /// One or two sentences.
    let about: String?
    /// The name of its metric without `prefetch_`.
    let metric: String?
    let isRequired: Bool
    let shape: @Sendable () -> Shape
    /// Nil if the object does not have it.
    let value: @Sendable (Root) -> (any Shown)?

    private init(
        _ name: String, _ title: String? = nil, about: String? = nil, metric: String? = nil, isRequired: Bool = true,
        shape: @escaping @Sendable () -> Shape, value: @escaping @Sendable (Root) -> (any Shown)?
    ) {
        (self.name, self.title, self.about, self.metric) = (name, title, about, metric)
        (self.isRequired, self.shape, self.value) = (isRequired, shape, value)
    }

    init<Value: Shown>(
        _ name: String, metric: String? = nil, about: String? = nil, _ value: @escaping @Sendable (Root) -> Value
    ) {
        self.init(name, about: about, metric: metric, shape: { .type(Value.self) }, value: { value($0) })
    }

    /// A member that people read too.
    init<Value: Shown>(_ name: String, _ title: String, _ value: @escaping @Sendable (Root) -> Value) {
        self.init(name, title, shape: { .type(Value.self) }, value: { value($0) })
    }

    /// A member that some objects do not have.
    static func ifKnown<Value: Shown>(
        _ name: String, about: String? = nil, _ value: @escaping @Sendable (Root) -> Value?
    ) -> Field {
        Field(name, about: about, isRequired: false, shape: { .type(Value.self) }, value: { value($0) })
    }

    /// What people read and programs have in other members.
    static func column<Value: Shown>(_ title: String, _ value: @escaping @Sendable (Root) -> Value) -> Field {
        Field("", title, isRequired: false, shape: { .type(Value.self) }, value: { value($0) })
    }

    /// A number with its own row.
    init(_ figure: Figure<Root>) {
        let isOptional = figure.about.isOptional
        self.init(
            figure.name, about: figure.about.help, shape: { isOptional ? Int?.shape : Int.shape },
            value: { figure.value($0) as any Shown })
    }

    /// A member with one value: the version counts what breaks readers.
    static var version: Field { Field("v", shape: { .constant(.int(1)) }, value: { _ in 1 }) }

    /// The member as one of a larger object.
    func inside<Whole>(_ part: @escaping @Sendable (Whole) -> Root) -> Field<Whole> {
        let value = value
        return Field<Whole>(
            name, title, about: about, metric: metric, isRequired: isRequired, shape: shape, value: { value(part($0)) })
    }
}
