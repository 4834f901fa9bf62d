package hf

func (b *builder) vocabulary() {}
